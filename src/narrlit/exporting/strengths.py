"""Strengths and weaknesses of a model for its card, from the result of `narrlit profile`."""

from pathlib import Path

from narrlit.errors import DataError, OptionError
from narrlit.markdown import escaped
from narrlit.results import Result
from narrlit.statistics.estimates import estimate_text

CELL_TASKS = {
    "far, strong": "choosing the same plot in another world over another plot in the world of the anchor",
    "far, weak": "choosing the same plot in another world over another plot in another world",
    "near, strong": "choosing the same plot with one aspect changed over another plot, all in one world",
    "near, weak": "choosing the same plot with one aspect changed over another plot in another world",
}
"""Tasks of Twice Told's triples, by cell."""
ASPECT_TASKS = {
    "theme": "noticing that only the theme of a story is changed",
    "action": "noticing that only the course of action is changed",
    "outcome": "noticing that only the outcome is changed",
}
TESTS = {
    **{f"triples: {cell}": (f"{task}: accuracy {{figure}}, {{n}} triples", 0.5) for cell, task in CELL_TASKS.items()},
    **{
        f"fall: {aspect}": (f"{task}: similarity falls by {{figure}} standard deviations, {{n}} stories", 0.0)
        for aspect, task in ASPECT_TASKS.items()
    },
}
"""Sentence about a figure, and its value by chance, by the subset of a profile."""
GOOD, BAD, UNDECIDED = "Good for", "Not good for", "Not decided: the interval includes chance, or there is none"


def describe(path: str | Path, model: str) -> str:
    """Describe what a model is good for and not good for, in Markdown.

    Args:
        path: profile.json, which `narrlit profile MODEL --out FOLDER` writes.
        model: name of the model.

    Raises:
        DataError: if the file can't be read, or is no profile.
        OptionError: if the profile is of other models.
    """
    profile = Result.read(path)
    settings = profile.settings
    if not {"measure", "split", "plots", "worlds"} <= settings.keys():
        raise DataError("not_a_profile", path=path)
    systems = list(dict.fromkeys(profile.figures["system"]))
    same = [name for name in systems if name == model or Path(name).resolve() == Path(model).resolve()]
    if not same:
        raise OptionError("profile_of_other_model", systems=systems, model=model)
    figures = profile.figures[profile.figures["system"] == same[0]].set_index("subset")

    lines_by_group: dict[str, list[str]] = {GOOD: [], BAD: [], UNDECIDED: []}
    for subset, (sentence, chance) in TESTS.items():
        if subset not in figures.index:
            continue
        row = figures.loc[subset]
        group = GOOD if row["low"] > chance else BAD if row["high"] < chance else UNDECIDED
        text = estimate_text(row["value"], row["low"], row["high"])
        lines_by_group[group].append(f"- {sentence.format(figure=text, n=row['n'])}")
    shares = []
    for subset, row in figures.iterrows():
        facet, _, component = str(subset).partition(": ")
        if facet == "share":
            interval = "" if row["low"] != row["low"] else f" [{100 * row['low']:.1f}, {100 * row['high']:.1f}]"
            shares.append(f"{escaped(component)} {100 * row['value']:.1f} %{interval}")

    corpus = "Twice Told" if settings["split"] is None else f"the {escaped(settings['split'])} part of Twice Told"
    lines = [
        f"Measured by `narrlit profile` on {corpus}: {settings['plots']} plots, each told in {settings['worlds']} "
        f"worlds, with the measure {escaped(settings['measure'])}. Intervals are 95 %.",
        "",
    ]
    for group, of_group in lines_by_group.items():
        if of_group:
            lines += [f"**{group}**", "", *of_group, ""]
    return "\n".join([*lines, f"Similarity is made of: {', '.join(shares)}."])
