"""Twice Told, a corpus of the package: plots told in several worlds, and tellings in which one aspect is changed.

Since every plot is told in every world, the influence of the plot on a model can be separated from that of people,
places and words.
"""

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from importlib.resources import files
from itertools import chain
from pathlib import Path
from typing import Any, Literal, NamedTuple

from narrlit.data.row_file import RowFile, numbered_rows
from narrlit.data.schema import Aspect, StoryTable, Triple, Triples
from narrlit.data.writers import write_table
from narrlit.errors import OptionError
from narrlit.files import check_free, check_writable

FOLDER = files("narrlit") / "twice_told"
Split = Literal["train", "validation", "test"]
Cell = Literal["far, strong", "far, weak", "near, strong", "near, weak"]
CELLS: tuple[Cell, ...] = ("far, strong", "far, weak", "near, strong", "near, weak")
WORLDS: Mapping[Split, tuple[str, ...]] = {
    "train": ("harbor", "caravan", "office", "marsh"),
    "validation": ("prairie", "opera"),
    "test": ("station", "court"),
}
"""Worlds of each split. A telling whose plot and world belong to different splits is in no split."""
NUM_PLOTS: Mapping[Split, int] = {"train": 28, "validation": 8, "test": 12}
"""Number of plots of each split, in the order of the file."""
PLOT_LINE = "plot line"
"""Value of `world` for plot lines, which tell a plot in no world."""


@dataclass(frozen=True)
class Plot:
    """Theme, action and outcome that all tellings of a plot share.

    Attributes:
        plot: name of the plot.
        theme: what the plot is about.
        action: course of action.
        outcome: how the plot ends.
    """

    plot: str
    theme: str
    action: str
    outcome: str

    @property
    def line(self) -> str:
        """Plot line: course of action and outcome."""
        return f"{self.action} {self.outcome}"


@dataclass(frozen=True)
class Telling:
    """Story that tells a plot in a world.

    Attributes:
        plot: name of the plot.
        world: name of the world.
        text: text of the story.
        changed: aspect that differs from the plot; empty: none.
        change: how the aspect differs.
    """

    plot: str
    world: str
    text: str
    changed: Aspect | Literal[""] = ""
    change: str = ""

    @property
    def id(self) -> str:
        """Plot, world and, if there is one, the changed aspect, joined by hyphens."""
        return "-".join(filter(None, (self.plot, self.world, self.changed)))


class _Chosen(NamedTuple):
    """Three tellings, from which a labeled triple is made."""

    anchor: Telling
    positive: Telling
    negative: Telling


@dataclass(frozen=True)
class CellTriples:
    """Triples of one cell, which is named for how the positive and the negative relate to the anchor.

    Attributes:
        cell: `far`: the positive tells the anchor's plot in another world; `near`: it tells the plot in the anchor's
            world, with one aspect changed. `strong`: the negative, of another plot, shares the anchor's world; `weak`:
            it does not.
        triples: labeled triples.
        plots: name of each anchor's plot.
    """

    cell: Cell
    triples: Triples
    plots: Sequence[str]


@dataclass(frozen=True)
class TwiceTold:
    """Plots and their tellings, of the whole corpus or of one split.

    Attributes:
        plots: plots in the order of the file.
        worlds: worlds in the order of the splits.
        tellings: tellings of each plot in each world, plot by plot.
        changes: tellings of some plots in which one aspect is changed.

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
        worlds = tuple(chain.from_iterable(WORLDS.values()))
        return cls(_plots("plots.csv"), worlds, _tellings("tellings.csv"), _tellings("changes.csv"))

    def split(self, name: Split) -> "TwiceTold":
        """Return the plots of a split in its worlds; in the test split, both plots and worlds are thus unseen."""
        if name not in WORLDS:
            raise OptionError("unknown_choice", option="split", found=name, known=list(WORLDS))
        splits = list(NUM_PLOTS)
        earlier_splits = splits[: splits.index(name)]
        start = sum(NUM_PLOTS[split] for split in earlier_splits)
        plots = self.plots[start : start + NUM_PLOTS[name]]
        names, worlds = {plot.plot for plot in plots}, WORLDS[name]

        def is_in_split(telling: Telling) -> bool:
            return telling.plot in names and telling.world in worlds

        tellings = list(filter(is_in_split, self.tellings))
        changes = list(filter(is_in_split, self.changes))
        return TwiceTold(plots, worlds, tellings, changes)

    @cached_property
    def by_plot_and_world(self) -> Mapping[tuple[str, str], Telling]:
        """Tellings by plot and world."""
        return {(telling.plot, telling.world): telling for telling in self.tellings}

    def cells(self) -> list[CellTriples]:
        """Make the labeled triples of the four cells.

        Each anchor is paired once with each positive of the cell. Negatives are taken from the other plots in turn, so
        that all plots occur about equally often.
        """
        return [_labeled(cell, self._choose(cell)) for cell in CELLS]

    def _choose(self, cell: Cell) -> Iterator[_Chosen]:
        """Choose the tellings of each triple of a cell."""
        names = [plot.plot for plot in self.plots]
        for number, (anchor, positive) in enumerate(self._positives(cell)):
            step = 1 + number % (len(names) - 1)  # never as far as to the anchor's own plot
            other_plot = names[(names.index(anchor.plot) + step) % len(names)]
            other_worlds = [world for world in self.worlds if world != anchor.world]
            strong = cell.endswith("strong")
            world = anchor.world if strong else other_worlds[number % len(other_worlds)]
            yield _Chosen(anchor, positive, negative=self.by_plot_and_world[other_plot, world])

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
    """Return all training stories and plot lines as rows with the columns plot, world, changed and text."""
    folder = Path(str(FOLDER))
    return RowFile(folder, numbered_rows(_training_table(), folder))


def training_tellings() -> list[Telling]:
    """Return all training stories: those of the training split, and those of the further plots."""
    train = TwiceTold.read().split("train")
    return [*train.tellings, *train.changes, *further_tellings()]


def training_lines() -> list[Telling]:
    """Return the plot line (course of action and outcome) of each training plot, as a telling."""
    plots = [*TwiceTold.read().split("train").plots, *further_plots()]
    return [Telling(plot.plot, PLOT_LINE, plot.line) for plot in plots]


def held_back_cells() -> list[CellTriples]:
    """Make the labeled triples of two cells from plots and worlds on which no model of narrlit is trained.

    The cells are `far, strong` and `far, weak`. Each anchor is paired once with each other telling of its plot.
    Negatives are taken from the other plots in turn.
    """
    tellings = [telling for telling in held_back_tellings() if not telling.changed]
    strong = _labeled("far, strong", _far_triples(tellings, strong=True))
    weak = _labeled("far, weak", _far_triples(tellings, strong=False))
    return [strong, weak]


def _far_triples(tellings: Sequence[Telling], strong: bool) -> Iterator[_Chosen]:
    """Choose the tellings of triples with a negative of another plot, in the anchor's world if `strong`, else not."""
    for number, anchor in enumerate(tellings):
        positives, negatives = [], []
        for other in tellings:
            shares_world = other.world == anchor.world
            if other.plot == anchor.plot and not shares_world:
                positives.append(other)
            elif other.plot != anchor.plot and shares_world == strong:
                negatives.append(other)
        for step, positive in enumerate(positives):
            negative = negatives[(7 * number + step) % len(negatives)]
            yield _Chosen(anchor, positive, negative)


def _labeled(cell: Cell, chosen: Iterable[_Chosen]) -> CellTriples:
    """Make labeled triples in which the positive is A and B in turn."""
    stories = StoryTable()
    rows, plots = [], []
    for number, tellings in enumerate(chosen):
        a_is_closer = number % 2 == 0
        anchor = stories.add(tellings.anchor.text)
        a, b = tellings.positive, tellings.negative
        if not a_is_closer:
            a, b = b, a
        rows.append(Triple(anchor, stories.add(a.text), stories.add(b.text), a_is_closer))
        plots.append(tellings.anchor.plot)
    return CellTriples(cell, Triples(stories, rows), plots)


def further_plots() -> list[Plot]:
    """Read the further plots, which are used for training only."""
    return _plots("further_plots.csv")


def further_tellings() -> list[Telling]:
    """Read the tellings of the further plots, each in three or more worlds and at least once with a changed outcome."""
    return _tellings("further.csv")


def held_back_plots() -> list[Plot]:
    """Read the held-back plots, on which no model of narrlit is trained."""
    return _plots("held_back_plots.csv")


def held_back_tellings() -> list[Telling]:
    """Read the tellings of the held-back plots in twelve worlds, each plot in three and once with a changed outcome."""
    return _tellings("held_back.csv")


def _plots(name: str) -> list[Plot]:
    """Read a table of plots."""
    return [Plot(**row) for row in _rows(name)]


def _tellings(name: str) -> list[Telling]:
    """Read a table of tellings, some of which may have a changed aspect."""
    rows: list[dict[str, Any]] = _rows(name)
    return [Telling(**row) for row in rows]


def _rows(name: str) -> list[dict[str, str]]:
    """Read a table of the corpus."""
    with (FOLDER / name).open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


@dataclass(frozen=True)
class WrittenCorpus:
    """Twice Told, written to a folder.

    Attributes:
        folder: the folder.
        files: stories.csv, changes.csv, plots.csv, training.csv, the triples of each split, held_back.jsonl and
            README.md.
    """

    folder: Path
    files: tuple[Path, ...]

    def __str__(self) -> str:
        """One line: folder and files."""
        return f"{self.folder}: {', '.join(path.name for path in self.files)}"


def write_twice_told(out: str | Path, *, overwrite: bool = False) -> WrittenCorpus:
    """Write Twice Told: stories.csv, changes.csv, plots.csv, training.csv, README.md, and triples (SPLIT.jsonl).

    Triples have the additional columns `cell` (such as `far, strong`; see `CellTriples`) and `plot`, the anchor's plot.
    training.csv has all training data: the stories of the training split, the tellings of the further plots, and the
    plot lines, whose world is `plot line`. held_back.jsonl has triples of plots on which no model is trained.

    Args:
        out: folder to write to.
        overwrite: replace existing files of the same names.

    Returns:
        A `WrittenCorpus`: `.files`.

    Raises:
        OptionError: if a file exists and `overwrite` is False; nothing is written.

    >>> written = write_twice_told(getfixture("tmp_path") / "corpus")
    >>> [path.name for path in written.files][:3]
    ['stories.csv', 'changes.csv', 'plots.csv']
    """
    folder = Path(out)
    tables = {folder / name: rows for name, rows in _corpus_tables().items()}
    card = folder / "README.md"
    paths = (*tables, card)
    for path in paths:
        check_writable(path)
    check_free([path for path in paths if path.exists()], overwrite, "", "folder")
    folder.mkdir(parents=True, exist_ok=True)
    for path, rows in tables.items():
        write_table(path, rows)
    card.write_text((FOLDER / "README.md").read_text(encoding="utf-8"), encoding="utf-8")
    return WrittenCorpus(folder, paths)


_TableRow = dict[str, object]


def _corpus_tables() -> dict[str, list[_TableRow]]:
    """Make the rows of each table of the written corpus, by the name of its file."""
    corpus = TwiceTold.read()
    tables: dict[str, list[_TableRow]] = {
        "stories.csv": list(map(_story_row, corpus.tellings)),
        "changes.csv": list(map(_change_row, corpus.changes)),
        "plots.csv": list(map(asdict, [*corpus.plots, *further_plots()])),
        "training.csv": _training_table(),
    }
    for split in WORLDS:
        tables[f"{split}.jsonl"] = _triple_rows(corpus.split(split).cells())
    tables["held_back.jsonl"] = _triple_rows(held_back_cells())
    return tables


def _story_row(telling: Telling) -> _TableRow:
    return {"id": telling.id, "plot": telling.plot, "world": telling.world, "text": telling.text}


def _change_row(telling: Telling) -> _TableRow:
    return {
        "id": telling.id,
        "plot": telling.plot,
        "world": telling.world,
        "changed": telling.changed,
        "text": telling.text,
        "change": telling.change,
    }


def _training_row(telling: Telling) -> _TableRow:
    return {"plot": telling.plot, "world": telling.world, "changed": telling.changed, "text": telling.text}


def _training_table() -> list[_TableRow]:
    """Make a row for each training story and plot line."""
    return list(map(_training_row, [*training_tellings(), *training_lines()]))


def _triple_rows(cells: Sequence[CellTriples]) -> list[_TableRow]:
    """Make a row for each triple of several cells."""
    rows: list[_TableRow] = []
    for cell in cells:
        for texts, triple, plot in zip(cell.triples.texts(), cell.triples, cell.plots, strict=True):
            anchor, a, b = texts
            row: _TableRow = {
                "anchor_text": anchor,
                "text_a": a,
                "text_b": b,
                "text_a_is_closer": triple.a_is_closer,
                "cell": cell.cell,
                "plot": plot,
            }
            rows.append(row)
    return rows
