"""Twice Told: plots, each told in several worlds, and tellings in which one aspect is changed; comes with the package.

Every plot occurs in all worlds and every world has all plots, so that what a model takes from the plot and what it
takes from people, places and words can be told apart.
"""

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import Literal, cast

from narrlit.data.rows import Row, RowFile
from narrlit.data.schema import StoryTable, Triple, Triples
from narrlit.data.writers import write_table
from narrlit.errors import OptionError
from narrlit.files import check_free, check_writable

FOLDER = files("narrlit") / "twice_told"
Changed = Literal["theme", "action", "outcome"]
Split = Literal["train", "validation", "test"]
Cell = Literal["far, strong", "far, weak", "near, strong", "near, weak"]
CELLS: tuple[Cell, ...] = ("far, strong", "far, weak", "near, strong", "near, weak")
WORLDS: Mapping[Split, tuple[str, ...]] = {
    "train": ("harbor", "caravan", "office", "marsh"),
    "validation": ("prairie", "opera"),
    "test": ("station", "court"),
}
"""Worlds by split. Tellings of a split's plots in the worlds of another are in no split."""
NUM_PLOTS: Mapping[Split, int] = {"train": 28, "validation": 8, "test": 12}
"""Number of plots of each split, in the order of the file."""
PLOT_LINE = "plot line"
"""World of a plot's line, which tells it in no world."""


@dataclass(frozen=True)
class Plot:
    """Theme, action and outcome that all tellings of a plot share.

    Attributes:
        plot: its name.
        theme: what it is about.
        action: course of action.
        outcome: how it ends.
    """

    plot: str
    theme: str
    action: str
    outcome: str


@dataclass(frozen=True)
class Telling:
    """A plot, told in a world.

    Attributes:
        plot: name of the plot.
        world: name of the world.
        text: the story.
        changed: aspect that differs from the plot; empty: none.
        change: how it differs.
    """

    plot: str
    world: str
    text: str
    changed: Changed | Literal[""] = ""
    change: str = ""

    @property
    def id(self) -> str:
        """Plot, world and the changed aspect, with hyphens between."""
        return "-".join(filter(None, (self.plot, self.world, self.changed)))


@dataclass(frozen=True)
class CellTriples:
    """Triples of one cell: how the positive and the negative relate to the anchor.

    Attributes:
        cell: `far`: the positive tells the anchor's plot in another world, `near`: in the anchor's own world, with one
            aspect changed; `strong`: the negative, of another plot, shares the anchor's world, `weak`: it does not.
        triples: with labels.
        plots: of the anchors.
    """

    cell: Cell
    triples: Triples
    plots: Sequence[str]


@dataclass(frozen=True)
class TwiceTold:
    """Plots and their tellings, all or those of a split.

    Attributes:
        plots: in the order of the file.
        worlds: in the order of the splits.
        tellings: of each plot in each world, plot by plot.
        changes: tellings of some plots, each in a world, in which one aspect is changed.

    >>> corpus = TwiceTold.read()
    >>> len(corpus.plots), len(corpus.worlds), len(corpus.tellings), len(corpus.changes)
    (48, 8, 384, 96)
    >>> len(further_plots()), len(further_tellings())
    (303, 1272)
    >>> test = corpus.split("test")
    >>> len(test.plots), test.worlds, len(test.tellings)
    (12, ('station', 'court'), 24)
    """

    plots: Sequence[Plot]
    worlds: tuple[str, ...]
    tellings: Sequence[Telling]
    changes: Sequence[Telling]

    @classmethod
    def read(cls) -> "TwiceTold":
        """Read the corpus."""
        plots = [Plot(**row) for row in _rows("plots.csv")]
        worlds = tuple(world for names in WORLDS.values() for world in names)
        tellings = [Telling(row["plot"], row["world"], row["text"]) for row in _rows("tellings.csv")]
        return cls(plots, worlds, tellings, _tellings("changes.csv"))

    def split(self, name: Split) -> "TwiceTold":
        """Return the plots of a split, told in the worlds of the split: test plots and worlds are both unseen."""
        if name not in WORLDS:
            raise OptionError(f"`split={name}`: give one of {', '.join(WORLDS)}")
        before = list(NUM_PLOTS)[: list(NUM_PLOTS).index(name)]
        start = sum(NUM_PLOTS[other] for other in before)
        plots = self.plots[start : start + NUM_PLOTS[name]]
        names, worlds = {plot.plot for plot in plots}, WORLDS[name]
        tellings = [telling for telling in self.tellings if telling.plot in names and telling.world in worlds]
        changes = [telling for telling in self.changes if telling.plot in names and telling.world in worlds]
        return TwiceTold(plots, worlds, tellings, changes)

    @cached_property
    def by_plot_and_world(self) -> Mapping[tuple[str, str], Telling]:
        """Each telling by its plot and world."""
        return {(telling.plot, telling.world): telling for telling in self.tellings}

    def cells(self) -> list[CellTriples]:
        """Make labeled triples of four cells.

        An anchor has each positive of the cell once. Negatives are taken in turn from the other plots, so that all
        occur about as often.
        """
        return [_labeled(cell, self._choose(cell)) for cell in CELLS]

    def _choose(self, cell: Cell) -> Iterator[tuple[Telling, Telling, Telling]]:
        """Choose anchor, positive and negative of each triple of a cell."""
        names = [plot.plot for plot in self.plots]
        for number, (anchor, positive) in enumerate(self._positives(cell)):
            own = names.index(anchor.plot)
            other_plot = names[(own + 1 + number % (len(names) - 1)) % len(names)]
            other_worlds = [world for world in self.worlds if world != anchor.world]
            strong = cell.endswith("strong")
            world = anchor.world if strong else other_worlds[number % len(other_worlds)]
            yield anchor, positive, self.by_plot_and_world[other_plot, world]

    def _positives(self, cell: Cell) -> Iterator[tuple[Telling, Telling]]:
        """Choose anchor and positive of each triple of a cell."""
        if cell.startswith("near"):
            for change in self.changes:
                yield self.by_plot_and_world[change.plot, change.world], change
            return
        for anchor in self.tellings:
            for world in self.worlds:
                if world != anchor.world:
                    yield anchor, self.by_plot_and_world[anchor.plot, world]


def training_rows() -> RowFile:
    """Return all stories and lines that train, as rows of a table with the columns plot, world, changed and text."""
    folder = Path(str(FOLDER))
    rows = [Row(line, row, folder) for line, row in enumerate(_training_table(), start=1)]
    return RowFile(folder, rows)


def training_tellings() -> list[Telling]:
    """Return all stories that train: those of the training split, and of the further plots."""
    train = TwiceTold.read().split("train")
    return [*train.tellings, *train.changes, *further_tellings()]


def training_lines() -> list[Telling]:
    """Return the line of each plot that trains, course of action and outcome, as a telling of it."""
    plots = [*TwiceTold.read().split("train").plots, *further_plots()]
    return [Telling(plot.plot, PLOT_LINE, f"{plot.action} {plot.outcome}") for plot in plots]


def held_back_cells() -> list[CellTriples]:
    """Make labeled triples, far and strong or weak, of plots and worlds on which no model of narrlit is trained.

    An anchor has each other telling of its plot as positive once. Negatives are taken in turn from the other plots.
    """
    tellings = [telling for telling in held_back_tellings() if not telling.changed]
    strong = _labeled("far, strong", _far_triples(tellings, strong=True))
    weak = _labeled("far, weak", _far_triples(tellings, strong=False))
    return [strong, weak]


def _far_triples(tellings: Sequence[Telling], strong: bool) -> Iterator[tuple[Telling, Telling, Telling]]:
    """Choose anchor, positive and negative: the negative shares the anchor's world, or neither world nor plot."""
    for number, anchor in enumerate(tellings):
        positives = [other for other in tellings if other.plot == anchor.plot and other.world != anchor.world]
        others = [other for other in tellings if other.plot != anchor.plot]
        negatives = [other for other in others if (other.world == anchor.world) == strong]
        for step, positive in enumerate(positives):
            yield anchor, positive, negatives[(7 * number + step) % len(negatives)]


def _labeled(cell: Cell, chosen: Iterable[tuple[Telling, Telling, Telling]]) -> CellTriples:
    """Label triples of anchor, positive and negative, A and B in turn."""
    stories = StoryTable()
    rows, plots = [], []
    for number, (anchor, positive, negative) in enumerate(chosen):
        a_is_closer = number % 2 == 0
        candidates = (positive, negative) if a_is_closer else (negative, positive)
        story, a, b = [stories.add(telling.text) for telling in (anchor, *candidates)]
        rows.append(Triple(story, a, b, a_is_closer))
        plots.append(anchor.plot)
    return CellTriples(cell, Triples(stories, rows), plots)


def further_plots() -> list[Plot]:
    """Read the further plots, which only train."""
    return [Plot(**row) for row in _rows("further_plots.csv")]


def further_tellings() -> list[Telling]:
    """Read the tellings of the further plots: each in three or more worlds, and once or more with another outcome."""
    return _tellings("further.csv")


def held_back_plots() -> list[Plot]:
    """Read the plots that are held back."""
    return [Plot(**row) for row in _rows("held_back_plots.csv")]


def held_back_tellings() -> list[Telling]:
    """Read the tellings of the plots that are held back, in twelve worlds, as those of the further plots."""
    return _tellings("held_back.csv")


def _tellings(name: str) -> list[Telling]:
    """Read a table of tellings with changed ones among them."""
    return [
        Telling(row["plot"], row["world"], row["text"], cast("Changed", row["changed"]), row["change"])
        for row in _rows(name)
    ]


def _rows(name: str) -> list[dict[str, str]]:
    """Read a table of the corpus."""
    with (FOLDER / name).open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


@dataclass(frozen=True)
class WrittenCorpus:
    """Twice Told in a folder.

    Attributes:
        folder: where it is.
        files: stories.csv, changes.csv, plots.csv, training.csv, README.md, and triples of each split.
    """

    folder: Path
    files: tuple[Path, ...]

    def __str__(self) -> str:
        """One line: folder and files."""
        return f"{self.folder}: {', '.join(path.name for path in self.files)}"


def write_twice_told(folder: str | Path, *, overwrite: bool = False) -> WrittenCorpus:
    """Write Twice Told: stories.csv, changes.csv, plots.csv, training.csv, README.md, and triples (SPLIT.jsonl).

    The triples have the columns `cell` (`far, strong` and so on; see `CellTriples`) and `plot`, that of the anchor.
    training.csv has all that trains: the stories of the training split, the tellings of the further plots, and the line
    of each plot, whose world is `plot line`. held_back.jsonl has triples of plots on which no model is trained.

    Args:
        folder: to write into.
        overwrite: replace files of the same names.

    Returns:
        A `WrittenCorpus`: `.files`.

    Raises:
        OptionError: if there is such a file; nothing is written.

    >>> written = write_twice_told(getfixture("tmp_path") / "corpus")
    >>> [path.name for path in written.files][:3]
    ['stories.csv', 'changes.csv', 'plots.csv']
    """
    folder, corpus = Path(folder), TwiceTold.read()
    tables: dict[str, list[dict[str, object]]] = {
        "stories.csv": [_story_row(telling) for telling in corpus.tellings],
        "changes.csv": [{**_story_row(telling), "change": telling.change} for telling in corpus.changes],
        "plots.csv": [asdict(plot) for plot in [*corpus.plots, *further_plots()]],
        "training.csv": _training_table(),
    }
    for split in WORLDS:
        tables[f"{split}.jsonl"] = list(_triple_rows(corpus.split(split).cells()))
    tables["held_back.jsonl"] = list(_triple_rows(held_back_cells()))
    card = folder / "README.md"
    paths = [folder / name for name in tables]
    for path in (*paths, card):
        check_writable(path)
    check_free([path for path in (*paths, card) if path.exists()], overwrite, "", "folder")
    folder.mkdir(parents=True, exist_ok=True)
    for path, rows in zip(paths, tables.values(), strict=True):
        write_table(path, rows)
    card.write_text((FOLDER / "README.md").read_text(encoding="utf-8"), encoding="utf-8")
    return WrittenCorpus(folder, (*paths, card))


def _story_row(telling: Telling) -> dict[str, object]:
    row: dict[str, object] = {"id": telling.id, "plot": telling.plot, "world": telling.world}
    if telling.changed:
        row["changed"] = telling.changed
    return {**row, "text": telling.text}


def _training_table() -> list[dict[str, object]]:
    """Make a row of each story and each line that trains."""
    return [
        {"plot": telling.plot, "world": telling.world, "changed": telling.changed, "text": telling.text}
        for telling in [*training_tellings(), *training_lines()]
    ]


def _triple_rows(cells: Sequence[CellTriples]) -> Iterator[dict[str, object]]:
    for cell in cells:
        for (anchor, a, b), triple, plot in zip(cell.triples.texts(), cell.triples, cell.plots, strict=True):
            label = {"text_a_is_closer": triple.a_is_closer, "cell": cell.cell, "plot": plot}
            yield {"anchor_text": anchor, "text_a": a, "text_b": b, **label}
