"""Answers of systems to labeled triples: models, baselines, files of answers or embeddings, submissions."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any, Literal

import numpy as np

from narrlit.data.readers import read_stories
from narrlit.data.rows import read_rows
from narrlit.data.schema import (
    BoolArray,
    DoubleArray,
    FloatArray,
    IntArray,
    Track,
    Triples,
    normal_text,
    triple_cosines,
)
from narrlit.data.splits import story_numbers
from narrlit.encoding.loading import load
from narrlit.encoding.story_encoder import StoryEncoder
from narrlit.encoding.story_texts import StoryTexts
from narrlit.errors import DataError, OptionError, printable, reading
from narrlit.experiments.options import ANSWER_SUFFIXES
from narrlit.measures import Cosine, Lexical, Similarity, measure_of, open_measure
from narrlit.measures.meanmax import MeanMax
from narrlit.models.checkpoints import read_record, seen_in_training
from narrlit.statistics.estimates import Estimate, Row, estimate
from narrlit.statistics.words import StopWords
from narrlit.submission import check_vectors, read_answers, read_submission

SystemKind = Literal["model", "baseline", "answers", "vectors", "submission"]
Flags = dict[str, bool | int | str]
"""Contamination and provenance flags of an accuracy, by name."""
SEEN = "seen_in_training"
"""Flag with the reason why an accuracy is not a valid result: training on the triples."""


def flag_words(flags: Flags) -> list[str]:
    """Format flags: the name and, unless it is True, the value.

    >>> flag_words({"transductive": True, "num_evaluations": 3})
    ['transductive', 'num_evaluations 3']
    """
    return [name if value is True else f"{name} {value}" for name, value in flags.items()]


@dataclass(frozen=True, eq=False)
class SystemAnswers:
    """Answers of one system to N labeled triples.

    Attributes:
        name: name of the system, as the user wrote it.
        kind: kind of the system.
        labels: (N,) True if A is closer.
        answers: (N,) True if the system answers A; a tie counts as an answer for B.
        scores: (N, 2) scores of A and B; None if only answers are known.
        vectors: (N, 3, D) embeddings of anchor, A and B; None for baselines, answers and Mean-Max.
        flags: contamination and provenance flags, from the record of the run.
        stories: (N, 3) numbers of the stories of each triple; None: the triples share no stories.
        settings: stop words of a baseline that weights words, by the name of the setting.
    """

    name: str
    kind: SystemKind
    labels: BoolArray
    answers: BoolArray
    scores: DoubleArray | None = None
    vectors: FloatArray | None = None
    flags: Flags = field(default_factory=dict)
    stories: IntArray | None = None
    settings: dict[str, StopWords | None] = field(default_factory=dict)

    @classmethod
    def scored(
        cls, name: str, kind: SystemKind, labels: BoolArray, scores: DoubleArray, **others: Any
    ) -> "SystemAnswers":
        """Answer by scores (N, 2): A if its score is strictly higher."""
        answers = scores[:, 0] > scores[:, 1]
        return cls(name, kind, labels, answers, scores, **others)

    @property
    def correct(self) -> BoolArray:
        """Right answers (N,)."""
        correct: BoolArray = self.answers == self.labels
        return correct

    @cached_property
    def margin(self) -> DoubleArray | None:
        """Score of the right candidate minus that of the wrong one, (N,); None without scores."""
        if self.scores is None:
            return None
        difference: DoubleArray = self.scores[:, 0] - self.scores[:, 1]
        return np.where(self.labels, difference, -difference)

    @property
    def ties(self) -> BoolArray:
        """Triples (N,) with equal scores, which count as answers for B."""
        if self.scores is None:
            return np.zeros(len(self.labels), dtype=np.bool_)
        ties: BoolArray = self.scores[:, 0] == self.scores[:, 1]
        return ties

    @property
    def is_trained_on_triples(self) -> bool:
        """True if the record of the system names these triples; possible training on them is only noted."""
        return str(self.flags.get(SEEN)).startswith("trained on these triples")

    @cached_property
    def estimate(self) -> Estimate:
        """Accuracy with its interval, which accounts for stories that the triples share."""
        return estimate(self.correct, self.stories)

    def figure(self, rows: IntArray | None = None, subset: str = "all") -> Row:
        """Return a row of figures: the accuracy on all triples, or on some of them, the number of ties, and flags."""
        if rows is None:
            accuracy, ties = self.estimate, self.ties
        else:
            stories = None if self.stories is None else self.stories[rows]
            accuracy, ties = estimate(self.correct[rows], stories), self.ties[rows]
        words = flag_words({name: name == SEEN or value for name, value in self.flags.items()})
        flags = ", ".join(words) or None
        return accuracy.row(self.name, subset=subset, kind=self.kind, ties=int(ties.sum()), flags=flags)


System = str | PathLike[str] | StoryEncoder | Similarity
"""A measure of similarity; an encoder, compared by cosine; the name of one of these (`measures.open_measure`); or a
file of answers (.jsonl, .csv, .tsv), embeddings (.npy) or a submission (.zip)."""


def open_systems(
    names: Sequence[str],
    load_encoder: Callable[[str], StoryEncoder] = load,
    *,
    meanmax: MeanMax = MeanMax(),
    texts: StoryTexts = StoryTexts(),
) -> dict[str, System]:
    """Open systems by their names.

    Args:
        names: names of measures, as for `measures.open_measure`, or files of answers, embeddings and submissions.
        load_encoder: function that loads a model by its name.
        meanmax: settings of Mean-Max.
        texts: texts of a story that baselines read.

    Returns:
        The systems by name.

    Raises:
        ModelError: if there is no such model.
        OptionError: if a system is named twice, or settings of Mean-Max are given but no system uses it.

    >>> list(open_systems(["jaccard", "answers.jsonl"]).values())
    [Lexical(name='jaccard', texts=StoryTexts(views=None, pseudonyms=None), encoder=None), 'answers.jsonl']
    """
    if meanmax != MeanMax() and not any(name.startswith("meanmax:") for name in names):
        raise OptionError("options_need_meanmax", prefix="meanmax:")
    systems: dict[str, System] = {}
    for name in names:
        if name in systems:
            raise OptionError("system_twice", name=name)
        is_file = Path(name).suffix in ANSWER_SUFFIXES
        systems[name] = name if is_file else open_measure(name, load_encoder, meanmax, texts)
    return systems


def answers_of(
    system: System,
    labeled: Triples,
    *,
    name: str | None = None,
    stories: str | Path | None = None,
    track: Track | None = None,
    progress: bool = False,
) -> SystemAnswers:
    """Return the answers of a system to labeled triples.

    Args:
        system: a measure, an encoder, the name of one of these, or a file.
        labeled: N triples as they are in their file, so that training on them can be recognized.
        name: name of the system; None: its own.
        stories: file of the embedded stories, in the same order as the embeddings of an .npy file or a submission.
        track: track of the triples; a submission is scored by its Track A answers (`a`) or its Track B embeddings
            (`b`); None: `b` if `stories` contains every story of the triples, else `a`.
        progress: show a progress bar on stderr.

    Raises:
        DataError: if a file can't be read or belongs to other triples.
        ModelError: if a model can't be found or loaded.
        OptionError: if `stories` is missing for embeddings, or a submission lacks the track of the triples.
    """
    if isinstance(system, str | PathLike) and Path(system).suffix in ANSWER_SUFFIXES:
        answers = _from_file(Path(system), name or os.fspath(system), labeled, labeled.labels == 1, stories, track)
    else:
        answers = _computed(system, name, labeled, progress)
    return replace(answers, stories=story_numbers(labeled))


def _computed(system: System, name: str | None, labeled: Triples, progress: bool) -> SystemAnswers:
    """Answer by a measure, an encoder, or the name of one of these."""
    labels = labeled.labels == 1
    if isinstance(system, str | PathLike):
        name = name or os.fspath(system)
    similarity = measure_of(system).fitted_for(labeled.stories)
    name = name or similarity.name
    if isinstance(similarity, Lexical):
        scores, settings = similarity.score(labeled), similarity.settings(labeled)
        return SystemAnswers.scored(name, "baseline", labels, scores, settings=settings)
    vectors = None
    if isinstance(similarity, Cosine):
        vectors = similarity.encoder.embed_triples(labeled, progress)
        scores = triple_cosines(vectors)
    else:
        scores = similarity.score(labeled, progress)
    flags = flags_of_similarity(similarity, labeled)
    return SystemAnswers.scored(name, "model", labels, scores, vectors=vectors, flags=flags)


def flags_of_similarity(similarity: Similarity, labeled: Triples) -> Flags:
    """Collect the flags of a measure's accuracy on triples."""
    if similarity.encoder is None:
        return {}
    path = None if labeled.report is None else str(labeled.report.path)
    flags = flags_of(similarity.encoder.name, path)
    if similarity.encoder.is_transductive:
        flags["transductive"] = True
    return flags


def _from_file(
    path: Path, name: str, labeled: Triples, labels: BoolArray, stories: str | Path | None, track: Track | None
) -> SystemAnswers:
    """Read answers, embeddings or a submission."""
    stories_path = None if stories is None else str(stories)
    if path.suffix == ".npy":
        with reading("unreadable_array", path):
            vectors = np.load(path, allow_pickle=False)
        return _from_vectors(name, "vectors", labeled, labels, vectors, stories_path)
    if path.suffix == ".zip":
        return _from_submission(path, name, labeled, labels, stories_path, track)
    return _from_answers(path, name, labeled, labels)


def flags_of(model: str, triples: str | None) -> Flags:
    """Collect the flags in the record of a run, and its training on triples."""
    record = read_record(model)
    if record is None:
        return {}
    flags: Flags = dict.fromkeys(record.flags.names, True)
    if record.num_evaluations:
        flags["num_evaluations"] = record.num_evaluations
    seen = None if triples is None else seen_in_training(model, triples)
    if seen is not None:
        flags[SEEN] = seen
    return flags


def _fitting(name: str, answers: Sequence[bool], labeled: Triples) -> BoolArray:
    """Check that there is one answer per row of the file of triples."""
    report = labeled.report
    if report is not None and report.dropped:
        raise DataError("answers_to_invalid_rows", name=name, path=report.path, n=sum(report.dropped.values()))
    if len(answers) != len(labeled):
        source = "the triples" if report is None else report.path
        raise DataError("answers_per_row", name=name, answers=len(answers), source=source, rows=len(labeled))
    return np.array(answers, dtype=np.bool_)


def _from_answers(path: Path, name: str, labeled: Triples, labels: BoolArray) -> SystemAnswers:
    """Read a file of answers, whose texts, if any, must be those of the triples."""
    answers, scores = read_answers(path)
    fitting = _fitting(name, answers, labeled)
    for row, (anchor, a, b) in zip(read_rows(path).rows, labeled.texts(), strict=True):
        if not isinstance(row.value, Mapping):
            continue
        expected = {"anchor_text": anchor, "text_a": a, "text_b": b}
        for column, text in expected.items():
            if row.value.get(column, text) != text:
                raise DataError("answers_to_other_triples", name=name, line=row.line, column=column)
    return SystemAnswers(name, "answers", labels, fitting, scores)


def _from_submission(
    path: Path, name: str, labeled: Triples, labels: BoolArray, stories: str | None, track: Track | None
) -> SystemAnswers:
    """Answer by the part of a submission for the track of the triples: its answers or its embeddings."""
    answers, vectors = read_submission(path)
    tracks: list[Track] = []
    if answers is not None:
        tracks.append("a")
    if vectors is not None:
        tracks.append("b")
    scored = track or _track_of(labeled, stories, tracks)
    if scored is None:
        raise OptionError("track_needed", name=name)
    if scored not in tracks:
        if track is None:
            raise OptionError("submission_without_embeddings", name=name, stories=stories)
        contained, needed = tracks[0].upper(), track.upper()
        raise OptionError("submission_without_track", name=name, contained=contained, needed=needed, track=tracks[0])
    flags: Flags = {"track": scored.upper()}
    if scored == "b":
        return replace(_from_vectors(name, "submission", labeled, labels, vectors, stories), flags=flags)
    return SystemAnswers(name, "submission", labels, _fitting(name, answers or [], labeled), flags=flags)


def _track_of(labeled: Triples, stories: str | None, tracks: Sequence[Track]) -> Track | None:
    """Return the track of triples: b if `stories`, the file of Track B, contains all of their stories.

    Otherwise it is the only track of a submission or, with two tracks, a if there is a file of stories, else None.
    """
    if stories is not None:
        texts = {normal_text(story.text) for story in read_stories(stories, strict=True)}
        if texts.issuperset(map(normal_text, _texts(labeled))):
            return "b"
    if len(tracks) == 1:
        return tracks[0]
    return None if stories is None else "a"


def _texts(labeled: Triples) -> list[str]:
    """Return the 3 N texts of anchor, A and B of each triple, as they are in their file."""
    return [labeled.stories[index].source_text for index in labeled.indices.ravel().tolist()]


def _from_vectors(
    name: str, kind: SystemKind, labeled: Triples, labels: BoolArray, vectors: Any, stories: str | None
) -> SystemAnswers:
    """Look up the embeddings of triples by the texts in the file of stories."""
    if stories is None:
        raise OptionError("embeddings_need_stories", name=name)
    if not isinstance(vectors, np.ndarray) or vectors.ndim != 2 or vectors.dtype.kind not in "fiu":
        raise DataError("not_an_array", path=name)
    check_vectors(vectors, name)
    texts = read_stories(stories, strict=True)
    if len(vectors) != len(texts):
        raise DataError("number_of_embeddings", name=name, embeddings=len(vectors), path=stories, stories=len(texts))
    row_of = {story.text: row for row, story in enumerate(texts)}
    row_of_normal = {normal_text(story.text): row for row, story in enumerate(texts)}
    rows = []
    for index, text in enumerate(_texts(labeled)):
        row = row_of.get(text, row_of_normal.get(normal_text(text)))
        if row is None:
            raise DataError(
                "story_without_embedding", path=stories, text=printable(text, 60), triple=index // 3 + 1, name=name
            )
        rows.append(row)
    chosen = vectors[rows].astype(np.float32).reshape(len(labeled), 3, -1)
    return SystemAnswers.scored(name, kind, labels, triple_cosines(chosen), vectors=chosen)


def answer_rows(systems: Iterable[SystemAnswers], labeled: Triples) -> list[dict[str, object]]:
    """Tabulate answers, one row per triple: number from 1, label, and by system scores, margin and correctness."""
    columns: dict[str, Sequence[object]] = {
        "row": range(1, len(labeled) + 1),
        "anchor": [printable(anchor, 60) for anchor, _, _ in labeled.texts()],
        "text_a_is_closer": (labeled.labels == 1).tolist(),
    }
    for system in systems:
        columns[f"{system.name}.answers_a"] = system.answers.tolist()
        if system.scores is not None and system.margin is not None:
            columns[f"{system.name}.score_a"], columns[f"{system.name}.score_b"] = system.scores.T.tolist()
            columns[f"{system.name}.margin"] = system.margin.tolist()
        columns[f"{system.name}.right"] = system.correct.tolist()
    rows = []
    for values in zip(*columns.values(), strict=True):
        rows.append(dict(zip(columns, values, strict=True)))
    return rows
