"""Back-translations of stories added to training examples.

Source: Mendel292, section 2.5: "up to 9x more triples per pivot language, producing about 1,800" from 200. Because a
language gives one version of each story, we read the 9 as those of three languages: with `mixed`, a version replaces
the anchor, the positive or the negative, one at a time.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import torch

from narrlit.console import counted
from narrlit.data.readers import read_examples, say_rows
from narrlit.data.schema import StoryTable, TrainingExample, TrainingExamples
from narrlit.data.writers import write_examples
from narrlit.encoding.model_loading import pick_device
from narrlit.encoding.options import Device
from narrlit.errors import OptionError
from narrlit.experiments.bertscore import BERTScores, load_bertscorer
from narrlit.experiments.options import Quality
from narrlit.files import write_text
from narrlit.markdown import markdown_table
from narrlit.preprocessing.back_translation import BackTranslation, TranslationModel, back_translate
from narrlit.preprocessing.pivots import Pivots
from narrlit.results.plots import write_svg

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PAPER = {"fr": (0.87, 0.05), "ru": (0.82, 0.05), "hi": (0.83, 0.05)}
"""Mean and standard deviation of BERTScore F1 by pivot: Mendel292, section 2.5, which does not name its encoder."""

SCORES = ("precision", "recall", "f1")


@dataclass
class PivotVersions:
    """Versions through one language.

    Attributes:
        versions: number of versions of examples.
        left_out: number of versions that can't be used, by reason.
        replaced: indices of new stories by the indices of the stories they replace.
        scores: BERTScores of the new stories, in this order; None without an encoder or without versions.
    """

    versions: int = 0
    left_out: Counter[str] = field(default_factory=Counter)
    replaced: dict[int, int] = field(default_factory=dict)
    scores: BERTScores | None = None

    def texts(self, table: StoryTable) -> tuple[list[str], list[str]]:
        """Return the texts of the new stories, and of those that they replace."""
        new = [table[index].text for index in self.replaced.values()]
        old = [table[index].text for index in self.replaced]
        return new, old

    @property
    def record(self) -> dict[str, Any]:
        """Counts and, for each score, n, mean, standard deviation and quartiles, as plain data; None without scores."""
        record: dict[str, Any] = {
            "versions": self.versions,
            "left_out": self.left_out,
            "stories": len(self.replaced),
        }
        if self.scores is None:
            return record | dict.fromkeys(SCORES)
        record["truncated"] = self.scores.truncated
        for score in SCORES:
            values = pd.Series(getattr(self.scores, score))
            record[score] = {
                "n": len(values),
                "mean": float(values.mean()),
                "standard_deviation": float(values.std()) if len(values) > 1 else 0.0,
                "quartiles": values.quantile([0.25, 0.5, 0.75]).tolist(),
            }
        return record


@dataclass(frozen=True, eq=False)
class Augmentation:
    """Training examples with their back-translated versions.

    Attributes:
        examples: each example, followed by its versions, which belong to the same group.
        num_examples: number of examples without versions.
        pivots: versions by language.
        settings: settings of the translation and of BERTScore, as plain data.
    """

    examples: TrainingExamples
    num_examples: int
    pivots: Mapping[str, PivotVersions]
    settings: Mapping[str, object]

    @property
    def num_versions(self) -> int:
        """Number of versions of all examples."""
        return len(self.examples) - self.num_examples

    @property
    def record(self) -> dict[str, object]:
        """Counts, figures and settings, as plain data."""
        pivots = {name: pivot.record for name, pivot in self.pivots.items()}
        counts = {"rows": self.num_examples, "versions": self.num_versions}
        return {**counts, "settings": dict(self.settings), "pivots": pivots, "paper": PAPER}

    def table(self) -> pd.DataFrame:
        """Tabulate the languages: versions, versions left out, stories, and mean and deviation of each score."""
        rows = []
        for name, pivot in self.pivots.items():
            record = pivot.record
            reasons = [f"{count} {reason}" for reason, count in pivot.left_out.items()]
            row: dict[str, object] = {
                "pivot": name,
                "versions": pivot.versions,
                "left out": ", ".join(reasons) or "0",
                "stories": len(pivot.replaced),
            }
            for score in SCORES:
                figures = record[score]
                row[score] = "none" if figures is None else "{mean:.3f} ± {standard_deviation:.3f}".format(**figures)
            row["f1 in the paper"] = "{:.2f} ± {:.2f}".format(*PAPER[name]) if name in PAPER else "none"
            rows.append(row)
        return pd.DataFrame(rows)

    def plot(self) -> "Axes":
        """Draw a box plot of BERTScore F1 by language.

        Raises:
            OptionError: if there are no scores.
        """
        from matplotlib.figure import Figure

        scores, labels = [], []
        for name, pivot in self.pivots.items():
            if pivot.scores is not None:
                scores.append(pivot.scores.f1)
                labels.append(f"{name} (n = {len(pivot.scores.f1)})")
        if not scores:
            raise OptionError("no_bertscore")
        figure = Figure(figsize=(1.5 + 1.2 * len(scores), 4), layout="tight")
        axes = figure.add_subplot(ylabel="BERTScore F1")
        axes.boxplot(scores, tick_labels=labels)
        return axes

    def write(self, path: str | Path) -> None:
        """Write examples and versions (.jsonl)."""
        write_examples(path, self.examples)

    def write_report(self, folder: str | Path) -> None:
        """Write report.json, report.md and, if there are scores, a box plot, bertscore.svg."""
        record = json.dumps(self.record, indent=2)
        write_text(Path(folder) / "report.json", f"{record}\n")
        write_text(Path(folder) / "report.md", f"{self}\n")
        if any(pivot.scores is not None for pivot in self.pivots.values()):
            write_svg(self.plot(), Path(folder) / "bertscore.svg")

    @property
    def summary(self) -> str:
        """Numbers of examples and versions, in one line."""
        return f"{counted(self.num_examples, 'example')} and {counted(self.num_versions, 'version')} of them"

    def __str__(self) -> str:
        """Format one row per language, in Markdown."""
        table = markdown_table("", self.table().to_dict("records"))
        if self.settings["bertscore"] == "none":
            return table.rstrip("\n")
        encoder = "layer {bertscore_layer} of {bertscore}".format(**self.settings)
        note = f"Mean ± standard deviation over stories; BERTScore by {encoder}, not rescaled, without idf weights."
        return f"{table}\n{note}"


def back_translate_examples(
    source: str | Path | TrainingExamples,
    *,
    log: str | Path,
    pivots: Pivots = Pivots(),
    quality: Quality = Quality(),
    mixed: bool = False,
    device: Device = "auto",
    strict: bool = False,
    progress: bool = False,
) -> Augmentation:
    """Add back-translated versions to training examples.

    An example and its versions share a group, so that they fall into the same fold. Repeat the call to resume: finished
    translations are kept in the log.

    Args:
        source: a file of training examples or labeled triples, or training examples.
        log: file of finished translations (.jsonl).
        pivots: pivot languages and translation models.
        quality: settings of BERTScore, which measures how close the versions are to the originals.
        mixed: replace one story of an example at a time, which gives a triple 3 versions per language; by default all
            stories are replaced together, which gives 1 version per language.
        device: device to compute on.
        strict: stop at the first invalid row instead of dropping and counting invalid rows.
        progress: print on stderr how files were read.

    Returns:
        An `Augmentation`: `.examples`, `.table()`, `.plot()`, `.write(path)`, `.write_report(folder)`.

    Raises:
        DataError: if the examples can't be read.
        ModelError: if a model can't be loaded.
        OptionError: if the machine has no such device.
    """
    examples = source if isinstance(source, TrainingExamples) else read_examples(source, strict=strict)
    if progress:
        say_rows(examples)
    computing = pick_device(device)
    scorer = None
    if quality.bertscore != "none":  # before the translation, so that a wrong name is reported at once
        scorer = load_bertscorer(quality.bertscore, quality.bertscore_layer, computing)
    table = StoryTable.of(examples.stories.texts)
    groups = [[example] for example in examples]
    versions: dict[str, PivotVersions] = {}
    for pivot, stories in list(_translate(table.texts, pivots, computing, Path(log))):
        added = _add_versions(groups, stories, table, mixed)
        if scorer is not None and added.replaced:
            added.scores = scorer(*added.texts(table))
        versions[pivot] = added
    rows = _named_groups(examples, groups)
    settings = {"mixed": mixed, **asdict(pivots), **asdict(quality)}
    settings["bertscore_layer"] = None if scorer is None else scorer.layer
    return Augmentation(TrainingExamples(table, rows), len(examples), versions, settings)


def _named_groups(examples: TrainingExamples, groups: Sequence[Sequence[TrainingExample]]) -> list[TrainingExample]:
    """List examples and versions with the name of their group: that of the example, or a digest."""
    rows = []
    for texts, group in zip(examples.texts(), groups, strict=True):
        name = group[0].group or _group_name(texts)
        rows += [replace(row, group=name) for row in group]
    return rows


def _group_name(texts: Sequence[str]) -> str:
    """Name the group of an example by a digest of its texts."""
    return sha256(json.dumps(texts).encode()).hexdigest()[:16]


def _translate(
    texts: Sequence[str], pivots: Pivots, device: torch.device, log: Path
) -> Iterator[tuple[str, dict[str, BackTranslation]]]:
    """Translate texts into each language and back; yield the language and the translation of each text."""
    models: dict[str, TranslationModel] = {}
    for pivot in pivots.names:
        translators = []
        for route in pivots.routes(pivot):
            model = models.get(route.model) or TranslationModel(route.model, device, log)
            models = {route.model: model} if pivots.nllb else {}  # a Marian model translates in one direction only
            translate = partial(model.translate, route=route, beams=pivots.beams, batch_tokens=pivots.batch_tokens)
            translators.append(translate)
        yield pivot, dict(zip(texts, back_translate(texts, *translators), strict=True))


def _add_versions(
    groups: list[list[TrainingExample]], stories: Mapping[str, BackTranslation], table: StoryTable, mixed: bool
) -> PivotVersions:
    """Add versions of each group's first example through one language; new stories are added to the table."""
    pivot = PivotVersions()
    for group in groups:
        example = group[0]
        for replaced in _replaced_stories(example, mixed):
            version = _version(example, replaced, stories, table)
            fault = _fault(version)
            if fault is not None:
                pivot.left_out[fault] += 1
                continue
            anchor, positive, *negatives = [table.add(story.text) for story in version]
            new = TrainingExample(anchor, positive, tuple(negatives), example.kinds)
            if any(row.indices == new.indices for row in group):
                pivot.left_out["equal to another version"] += 1
                continue
            group.append(new)
            pivot.versions += 1
            for position in replaced:
                pivot.replaced[example.indices[position]] = new.indices[position]
    return pivot


def _replaced_stories(example: TrainingExample, mixed: bool) -> list[list[int]]:
    """List the positions of the stories that each version of an example replaces: one if `mixed`, else all."""
    positions = list(range(len(example.indices)))
    return [[position] for position in positions] if mixed else [positions]


def _version(
    example: TrainingExample, replaced: Sequence[int], stories: Mapping[str, BackTranslation], table: StoryTable
) -> list[BackTranslation]:
    """Return the stories of an example, with back-translations at the replaced positions."""
    version = []
    for position, index in enumerate(example.indices):
        text = table[index].text
        version.append(stories[text] if position in replaced else BackTranslation(text))
    return version


def _fault(stories: Sequence[BackTranslation]) -> str | None:
    """Describe why stories can't form an example: a faulty translation, or two equal stories; None if they can."""
    for story in stories:
        if story.fault is not None:
            return story.fault
    anchor, positive, *negatives = [story.text for story in stories]
    if anchor == positive:
        return "anchor is its positive"
    if anchor in negatives:
        return "anchor among its negatives"
    if positive in negatives:
        return "positive among its negatives"
    return None
