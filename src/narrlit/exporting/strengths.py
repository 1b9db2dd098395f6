"""Strengths and weaknesses of a model for its card, from the result of `narrlit profile`."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from narrlit.errors import OptionError
from narrlit.exporting.markdown import escaped
from narrlit.json_records import read_json

CHANCE = 0.5
"""Accuracy of guessing on triples."""
CELLS = {
    "far, strong": "choosing the same plot in another world over another plot in the world of the anchor",
    "far, weak": "choosing the same plot in another world over another plot in another world",
    "near, strong": "choosing the same plot with one aspect changed over another plot, all in one world",
    "near, weak": "choosing the same plot with one aspect changed over another plot in another world",
}
"""Tasks of Twice Told's triples, by cell."""
ASPECTS = {
    "theme": "noticing that only the theme of a story is changed",
    "action": "noticing that only the course of action is changed",
    "outcome": "noticing that only the outcome is changed",
}
GROUPS = ("Good for", "Not good for", "Not decided: the interval includes chance, or there is none")


class _Part(BaseModel):
    """Part of a profile.json; other fields are ignored."""

    model_config = ConfigDict(strict=True, frozen=True)


class ShareFigure(_Part):
    """Share of the variance of similarity, with its 95 % interval; None without one."""

    share: float
    low: float | None
    high: float | None


class Figure(_Part):
    """Mean with its 95 % interval; None without one."""

    mean: float
    low: float | None
    high: float | None
    n: int


class ModelFigures(_Part):
    """Figures of one model.

    Attributes:
        model: name of the model.
        shares: shares of the variance by plot, world, length and rest.
        falls: falls of the similarity by changed aspect.
        cells: accuracies by cell of triples.
    """

    model: str
    shares: dict[str, ShareFigure]
    falls: dict[str, Figure]
    cells: dict[str, Figure]


class ProfileFile(_Part):
    """Contents of a profile.json."""

    measure: str
    split: str | None
    plots: int
    worlds: int
    models: list[ModelFigures]

    def figures_of(self, model: str) -> ModelFigures:
        """Return the figures of a model.

        Raises:
            OptionError: if the profile is of other models.
        """
        for figures in self.models:
            if figures.model == model or Path(figures.model).resolve() == Path(model).resolve():
                return figures
        names = ", ".join(figures.model for figures in self.models)
        raise OptionError(f"`profile`: it has {names}, not {model}: run narrlit profile {model} --out FOLDER")


def describe(path: str | Path, model: str) -> str:
    """Describe what a model is good for and not good for, in Markdown.

    Args:
        path: profile.json, which `narrlit profile MODEL --out FOLDER` writes.
        model: name of the model.

    Raises:
        DataError: if the file can't be read.
        OptionError: if the profile is of other models.
    """
    profile = read_json(Path(path), ProfileFile, "profile", "write it again with narrlit profile MODEL --out FOLDER")
    figures = profile.figures_of(model)
    lines_by_group: dict[str, list[str]] = {group: [] for group in GROUPS}
    for group, line in _findings(figures):
        lines_by_group[group].append(f"- {line}")
    corpus = "Twice Told" if profile.split is None else f"the {escaped(profile.split)} part of Twice Told"
    lines = [
        f"Measured by `narrlit profile` on {corpus}: {profile.plots} plots, each told in {profile.worlds} worlds, with "
        f"the measure {escaped(profile.measure)}. Intervals are 95 %.",
        "",
    ]
    for group, found in lines_by_group.items():
        if found:
            lines += [f"**{group}**", "", *found, ""]
    lines.append(_shares(figures.shares))
    return "\n".join(lines)


def _findings(figures: ModelFigures) -> Iterator[tuple[str, str]]:
    """Yield the group and the line of each test."""
    for cell, task in CELLS.items():
        if cell in figures.cells:
            accuracy = figures.cells[cell]
            yield _group(accuracy, CHANCE), f"{task}: accuracy {_interval(accuracy)}, {accuracy.n} triples"
    for aspect, task in ASPECTS.items():
        if aspect in figures.falls:
            fall = figures.falls[aspect]
            drop = f"{_interval(fall)} standard deviations, {fall.n} stories"
            yield _group(fall, 0.0), f"{task}: similarity falls by {drop}"


def _group(figure: Figure, chance: float) -> str:
    """Choose the group of a figure by its interval."""
    good, bad, undecided = GROUPS
    if figure.low is None or figure.high is None:
        return undecided
    if figure.low > chance:
        return good
    return bad if figure.high < chance else undecided


def _interval(figure: Figure) -> str:
    """Format a mean with its interval."""
    if figure.low is None or figure.high is None:
        return f"{figure.mean:.3f}"
    return f"{figure.mean:.3f} [{figure.low:.3f}, {figure.high:.3f}]"


def _shares(shares: Mapping[str, ShareFigure]) -> str:
    """Describe what the similarity of two stories is made of."""
    parts = []
    for name, share in shares.items():
        part = f"{escaped(name)} {100 * share.share:.1f} %"
        if share.low is not None and share.high is not None:
            part += f" [{100 * share.low:.1f}, {100 * share.high:.1f}]"
        parts.append(part)
    return f"Similarity is made of: {', '.join(parts)}."
