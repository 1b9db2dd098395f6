"""`narrlit.evaluate` and `narrlit.compare`: accuracy of one system, and of several, on labeled triples."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from narrlit.console import say, say_truncated
from narrlit.data.readers import read_labeled_triples
from narrlit.data.rows import file_digest
from narrlit.data.schema import Track, Triples
from narrlit.data.writers import write_table
from narrlit.encoding.story_encoder import StoryEncoder
from narrlit.errors import OptionError
from narrlit.experiments.board import Board, place
from narrlit.experiments.comparison import compare_systems, read_facets
from narrlit.experiments.options import ANSWER_SUFFIXES
from narrlit.experiments.report import Report, keep_report
from narrlit.experiments.systems import System, SystemAnswers, answer_rows, answers_of
from narrlit.measures import MeanMaxSimilarity, PassageSimilarity, Similarity, measure_of
from narrlit.models.config import DEFAULT_MODEL

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SEEN = "seen_in_training"


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Answers of one system to N labeled triples, and its accuracy.

    Attributes:
        answers: answer to each triple.
        triples: triples as they are in their file.
        settings: settings that determine the answers, as plain data.
    """

    answers: SystemAnswers
    triples: Triples
    settings: dict[str, object] = field(default_factory=dict)

    @property
    def accuracy(self) -> float:
        """Share of right answers, from 0 to 1."""
        return self.answers.summary.accuracy

    @property
    def n(self) -> int:
        """Number of triples."""
        return self.answers.summary.n

    @property
    def correct(self) -> int:
        """Number of right answers."""
        return self.answers.summary.correct

    @property
    def ties(self) -> int:
        """Number of equal scores, which count as answers for B."""
        return self.answers.summary.ties

    @property
    def interval(self) -> tuple[float, float]:
        """95 % confidence interval of the accuracy: by story if triples share stories, else Wilson's."""
        return self.answers.summary.interval

    @property
    def seen_in_training(self) -> str | None:
        """Reason why the accuracy is not a valid result: training on the triples; None if there is none."""
        seen = self.answers.flags.get(SEEN)
        return None if seen is None else str(seen)

    @property
    def record(self) -> dict[str, object]:
        """Figures and settings as plain data."""
        return {**self.answers.summary.as_dict(), "truncated": 0, **self.settings}

    def table(self) -> pd.DataFrame:
        """Tabulate the triples: label, scores of A and B, margin, and whether the answer is right."""
        return pd.DataFrame(answer_rows([self.answers], self.triples))

    def write(self, folder: str | Path) -> None:
        """Write evaluate.json and evaluate.md, and answers.csv with one row per triple."""
        keep_report(Path(folder), "evaluate", self.record, f"{self}\n")
        write_table(Path(folder) / "answers.csv", answer_rows([self.answers], self.triples))

    def __str__(self) -> str:
        """Format system, accuracy, interval and warnings as one line."""
        line = f"{self.answers.name}: accuracy {self.answers.summary}"
        if self.seen_in_training is not None:
            line += f"; {self.seen_in_training}"
        if self.settings.get("transductive"):
            line += "; transductive: post-processing was fitted on these stories"
        return line


def evaluate(
    triples: str | Path | Triples,
    system: System = DEFAULT_MODEL,
    *,
    labels: str | Path | None = None,
    strict: bool = False,
    progress: bool = False,
) -> Evaluation:
    """Evaluate a system on labeled triples, as SemEval-2026 Task 4 does; a tie counts as B.

    Args:
        triples: a file of labeled triples (JSON Lines, CSV), or triples as `read_triples` returns them.
        system: a model (run, folder, checkpoint, hub id, `minilm`), an encoder from `narrlit.load`, a measure of
            `narrlit.measures`, or a baseline: `random`, `jaccard`, `tfidf`, `bm25`, `longer`.
        labels: a file of `text_a_is_closer`, if the labels are not in the file of triples.
        strict: stop at the first invalid row instead of dropping and counting invalid rows.
        progress: print how files were read, and show a progress bar, on stderr.

    Returns:
        An `Evaluation`: `.accuracy`, `.n`, `.interval` (95 %), `.table()`, `.write(folder)`. It is printed as
        `minilm: accuracy 0.550 [0.481, 0.617] (110 of 200)`.

    Raises:
        DataError: if the triples can't be read, or one has no label.
        ModelError: if the model can't be loaded.

    >>> from narrlit.data.readers import read_triples
    >>> row = '{"anchor_text": "A knight seeks a grail.", "text_a": "A knight seeks a cup.", "text_b": "A bank opens."'
    >>> path = getfixture("tmp_path") / "triples.jsonl"
    >>> _ = path.write_text(row + ', "text_a_is_closer": true}')
    >>> print(evaluate(path, "jaccard"))
    jaccard: accuracy 1.000 [0.207, 1.000] (1 of 1)
    """
    labeled = read_labeled_triples(triples, labels, strict=strict, progress=progress)
    if not isinstance(system, str | PathLike) or Path(system).suffix not in ANSWER_SUFFIXES:
        system = measure_of(system).fitted_for(labeled.stories)
    answers = answers_of(system, labeled, progress=progress)
    seen = answers.flags.get(SEEN)
    if seen is not None:
        say(f"warning: {answers.name} was {seen}")
    settings: dict[str, object] = {"model": answers.name}
    if labeled.report is not None:
        settings |= {"triples": str(labeled.report.path), "dropped": labeled.report.dropped}
    if seen is not None:
        settings[SEEN] = seen
    settings |= answers.settings
    if isinstance(system, Similarity):
        settings |= _settings_of(system, labeled, progress)
    return Evaluation(answers, labeled, settings)


@dataclass(frozen=True, eq=False)
class Comparison:
    """Answers of several systems to the same N labeled triples, compared with the first one.

    Attributes:
        systems: answers of the systems, in the given order.
        triples: triples as they are in their file.
        report: tables, notes and plain data.
        board: the systems among the public results of the task; None if no track of them was given.
    """

    systems: list[SystemAnswers]
    triples: Triples
    report: Report
    board: Board | None = None

    @property
    def conclusion(self) -> str | None:
        """Sentence that lists the systems better or worse than the first; None for one system."""
        sentence: str | None = self.report.content["conclusion"]
        return sentence

    def table(self) -> pd.DataFrame:
        """Tabulate systems and their combinations: n, accuracy, interval, difference to the first, p, flags."""
        return self.report.table()

    def answers(self) -> pd.DataFrame:
        """Tabulate the triples: label, and by system scores, margin and whether the answer is right."""
        return pd.DataFrame(answer_rows(self.systems, self.triples))

    def plot(self) -> "Axes":
        """Plot the accuracies with 95 % intervals, and return the matplotlib axes."""
        return self.report.plot()

    def write(self, folder: str | Path) -> None:
        """Write compare.json, .csv, .md, .tex and (with matplotlib) .svg, and answers.csv with one row per triple."""
        self.report.write(Path(folder), "compare")
        write_table(Path(folder) / "answers.csv", answer_rows(self.systems, self.triples))

    def __str__(self) -> str:
        """Format tables and notes in Markdown."""
        return self.report.markdown().rstrip("\n")


def compare(  # noqa: PLR0913 (options)
    triples: str | Path | Triples,
    systems: Mapping[str, System] | Sequence[System],
    *,
    by: Sequence[str] = (),
    labels: str | Path | None = None,
    strict: bool = False,
    stories: str | Path | None = None,
    track: Track | None = None,
    board: Track | None = None,
    progress: bool = False,
) -> Comparison:
    """Compare systems with the first one, on the same labeled triples, by paired tests.

    Args:
        triples: a file of labeled triples (JSON Lines, CSV), or triples as `read_triples` returns them.
        systems: systems as for `evaluate`, optionally by name; or files: answers (.jsonl, .csv, .tsv), embeddings
            (.npy) and submissions (.zip).
        by: breakdowns of the accuracy: by quartile of `overlap` (of words), `length` or `margin`, or by a column of the
            file of triples.
        labels: a file of `text_a_is_closer`, if the labels are not in the file of triples.
        strict: stop at the first invalid row instead of dropping and counting invalid rows.
        stories: file of the embedded stories, in the same order as the embeddings of an .npy file or a submission.
        track: track of the triples; a submission is scored by its Track A answers (`a`) or its Track B embeddings
            (`b`); None: `b` if `stories` contains every story of the triples, else `a`.
        board: track of SemEval-2026 Task 4 whose teams the systems are placed among (`a`, `b`); the triples must be its
            400 test triples.
        progress: print how files were read, and show a progress bar, on stderr.

    Returns:
        A `Comparison`: `.table()`, `.conclusion`, `.answers()`, `.plot()`, `.write(folder)`. It is printed as its
        tables.

    Raises:
        DataError: if a file can't be read or belongs to other triples.
        ModelError: if a model can't be loaded.
        OptionError: if no system is given, a system is given twice, or a triple has no label.

    >>> row = '{"anchor_text": "A knight seeks a grail.", "text_a": "A knight seeks a cup.", "text_b": "A bank opens."'
    >>> path = getfixture("tmp_path") / "triples.jsonl"
    >>> _ = path.write_text(row + ', "text_a_is_closer": true}')
    >>> compare(path, ["jaccard", "longer"]).table()[["system", "n", "accuracy"]].head(2)
        system  n accuracy
    0  jaccard  1      1.0
    1   longer  1      1.0
    """
    named = named_systems(systems)
    if not named:
        raise OptionError("`systems` is empty: name at least one")
    labeled = read_labeled_triples(triples, labels, strict=strict, progress=progress)
    facets = read_facets(by, labeled)
    answers = []
    for name, system in named.items():
        answers.append(answers_of(system, labeled, name=name, stories=stories, track=track, progress=progress))
    about: dict[str, object] = {"triples": {"n": len(labeled)}}
    if labeled.report is not None:
        path = str(labeled.report.path)
        about["triples"] = {"path": path, "sha256": file_digest(path), "n": len(labeled)}
    about["reading"] = _reading(named.values())
    report = compare_systems(answers, labeled, facets, about)
    if board is None:
        return Comparison(answers, labeled, report)
    placed = place({system.name: system.summary for system in answers}, board)
    return Comparison(answers, labeled, placed.added_to(report), placed)


def named_systems(systems: Mapping[str, System] | Sequence[System]) -> dict[str, System]:
    """Return systems by name; systems without a given name get their own.

    Raises:
        OptionError: if two have the same name.
    """
    if isinstance(systems, Mapping):
        return dict(systems)
    named: dict[str, System] = {}
    for system in systems:
        name = fspath(system) if isinstance(system, str | PathLike) else system.name
        if name in named:
            raise OptionError(f"{name} is named twice; give different systems")
        named[name] = system
    return named


def _reading(systems: Iterable[System]) -> dict[str, object]:
    """Return how the first model reads stories: views, pseudonyms and windows; empty without a model."""
    for system in systems:
        encoder = getattr(system, "encoder", system)
        if isinstance(encoder, StoryEncoder):
            return encoder.about
    return {}


def _settings_of(similarity: Similarity, labeled: Triples, progress: bool) -> dict[str, object]:
    """Describe how stories were read and compared; print how long texts were read."""
    encoder = similarity.encoder
    if encoder is None:
        return {}
    facts, coverage = encoder.facts, encoder.coverage
    settings: dict[str, object] = {"model": encoder.name, "scorer": "cosine", "long": encoder.loading.long}
    unit = facts.unit
    if isinstance(similarity, MeanMaxSimilarity):
        settings |= {"scorer": "meanmax", **asdict(similarity.settings), "aligned": similarity.aligned}
        unit = ("sentence", "sentences")
    elif isinstance(similarity, PassageSimilarity):
        settings |= {"scorer": "passages", **asdict(similarity.matching)}
        unit = ("passage", "passages")
    elif not facts.symmetric:  # a story with both roles counts twice
        unit = (f"{unit[0]} with its prompt", f"{unit[1]} with its prompt")
    if progress:
        say_truncated(coverage, facts.max_length, *unit)
        if isinstance(similarity, MeanMaxSimilarity):
            gamma = similarity.settings.gamma
            say(f"windows decided {similarity.aligned} of {len(labeled)} triples, with scores within {gamma}")
    return settings | coverage.record | encoder.about
