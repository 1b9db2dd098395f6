"""Answers of any system to labeled triples: models, baselines, files of answers or vectors, submissions."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from narrlit.console import say, say_truncated
from narrlit.data.readers import read_stories
from narrlit.data.rows import JSON_SUFFIXES, file_digest, read_rows
from narrlit.data.schema import FloatArray, Role, Story, Triples, triple_cosines
from narrlit.errors import DataError, OptionError, printable, reading
from narrlit.metrics.baselines import BASELINES
from narrlit.metrics.meanmax import MeanMax, require_text_encoder, sentence_scores
from narrlit.metrics.significance import AccuracySummary
from narrlit.models.registry import find_record, read_record
from narrlit.options import LoadOptions, ModelOptions, StoryOptions, SubmissionOptions, Track, seen_in_training

if TYPE_CHECKING:
    from torch import Tensor


Bools = NDArray[np.bool_]
Scores = NDArray[np.float64]
Kind = Literal["model", "baseline", "answers", "vectors", "submission"]
CACHE = "runs/embeddings"
MEANMAX = "meanmax:"
ROWS = (*JSON_SUFFIXES, ".csv", ".tsv")
ANSWER_SUFFIXES = (*ROWS, ".npy", ".zip")
FLAGS = ("trained_on_validation", "transductive", "mined_validation")
"""Flags of a run that say what its accuracy depends on."""


@dataclass(frozen=True, eq=False)
class SystemAnswers:
    """Answers of one system to N labeled triples.

    Attributes:
        name: of the system, as its user wrote it.
        kind: of the system.
        labels: (N,) True where A is closer.
        answers: (N,) True where the system answers A; a tie is an answer for B.
        scores: (N, 2) of A and B; None where only answers are known.
        vectors: (N, 3, D) embeddings of anchor, A and B; None for baselines, answers and Mean-Max.
        flags: what else the accuracy depends on, from the run's record; only what applies.
    """

    name: str
    kind: Kind
    labels: Bools
    answers: Bools
    scores: Scores | None = None
    vectors: FloatArray | None = None
    flags: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def scored(cls, name: str, kind: Kind, labels: Bools, scores: Scores, **others: Any) -> "SystemAnswers":
        """Answer by scores (N, 2): A where it scores strictly higher."""
        return cls(name, kind, labels, scores[:, 0] > scores[:, 1], scores, **others)

    @property
    def correct(self) -> Bools:
        """Right answers (N,)."""
        correct: Bools = self.answers == self.labels
        return correct

    @cached_property
    def margin(self) -> Scores | None:
        """Score of the right candidate minus that of the wrong one, (N,); None without scores."""
        if self.scores is None:
            return None
        difference: Scores = self.scores[:, 0] - self.scores[:, 1]
        return np.where(self.labels, difference, -difference)

    @property
    def summary(self) -> AccuracySummary:
        """Accuracy with its interval."""
        ties = 0 if self.scores is None else int((self.scores[:, 0] == self.scores[:, 1]).sum())
        return AccuracySummary(len(self.labels), int(self.correct.sum()), ties)


def answers_of(
    spec: str,
    labeled: Triples,
    prepared: Triples,
    *,
    use: LoadOptions,
    read: StoryOptions,
    submitted: SubmissionOptions = SubmissionOptions(),
    meanmax: MeanMax | None = None,
    triples: str | None = None,
) -> SystemAnswers:
    """Get a system's answers to labeled triples.

    Args:
        spec: a model (run, folder, checkpoint, hub id, `minilm`), `meanmax:MODEL`, a baseline (`random`, `jaccard`,
            `tfidf`, `longer`), a file of answers (.jsonl, .csv, .tsv), of vectors (.npy), or a submission (.zip).
        labeled: N triples as they are in their file.
        prepared: the same with views attached and names replaced, as `read` wants it.
        use: how models are loaded.
        read: how models read stories.
        submitted: stories of vectors, and the track that the triples are of.
        meanmax: settings of Mean-Max.
        triples: path of the file of triples, by which a model that was trained on them is recognized.

    Raises:
        DataError: if a file can't be read or belongs to other triples.
        ModelError: if a model can't be found or loaded.
        OptionError: if vectors lack their stories, or a submission lacks the track of the triples.
    """
    labels, path = labeled.labels == 1, Path(spec)
    if spec in BASELINES:
        return SystemAnswers.scored(spec, "baseline", labels, BASELINES[spec](prepared.texts()))
    if path.suffix in ROWS:
        return _from_answers(spec, labeled, labels)
    if path.suffix == ".npy":
        with reading("vectors", path, "write them by numpy.save or narrlit embed --out FILE.npy"):
            vectors = np.load(path, allow_pickle=False)
        return _from_vectors(spec, "vectors", labeled, labels, vectors, submitted.stories)
    if path.suffix == ".zip":
        return _from_submission(spec, labeled, labels, submitted)
    model = spec.removeprefix(MEANMAX)
    if not model:
        raise OptionError(f"{MEANMAX} needs a model behind it, such as {MEANMAX}minilm")
    flags = flags_of(model, triples) | ({"transductive": True} if read.transductive else {})
    if spec != model:
        embed = StoryVectors(model, use, read, sentences=True)
        scores = sentence_scores(embed, prepared.texts(), meanmax or MeanMax())[0]
        embeddings = None
    else:
        items = [prepared.stories[index] for index in prepared.indices.ravel().tolist()]
        roles: list[Role] = ["anchor", "candidate", "candidate"]
        embeddings = StoryVectors(model, use, read)(items, roles * len(prepared)).reshape(len(prepared), 3, -1)
        scores = triple_cosines(embeddings)
    return SystemAnswers.scored(spec, "model", labels, scores, vectors=embeddings, flags=flags)


def flags_of(model: str, triples: str | None) -> dict[str, Any]:
    """Collect from a run's record what its accuracy depends on; only what applies."""
    path = find_record(model)
    if path is None:
        return {}
    record = read_record(path)
    flags = {name: True for name in FLAGS if (record.get("flags") or {}).get(name)}
    if record.get("num_evaluations"):
        flags["num_evaluations"] = record["num_evaluations"]
    seen = None if triples is None else seen_in_training(model, file_digest(triples))
    return flags | ({} if seen is None else {"seen_in_training": seen})


def _fitting(name: str, answers: Sequence[bool], labeled: Triples) -> Bools:
    """Check that there is an answer for each row of the triples' file, in its order."""
    report = labeled.report
    if report is not None and report.dropped:
        raise DataError(
            f"{name}: answers belong to the rows of {report.path}, of which {sum(report.dropped.values())} can't be "
            "read; correct these (--strict names the first)"
        )
    if len(answers) != len(labeled):
        where = "the triples" if report is None else report.path
        raise DataError(f"{name} has {len(answers)} answers, {where} {len(labeled)} rows; give one a row, in its order")
    return np.array(answers, dtype=np.bool_)


def _from_answers(name: str, labeled: Triples, labels: Bools) -> SystemAnswers:
    from narrlit.submission import read_answers

    answers, scores = read_answers(Path(name))
    fitting = _fitting(name, answers, labeled)
    for row, texts in zip(read_rows(name).rows, labeled.texts(), strict=True):
        for column, text in zip(("anchor_text", "text_a", "text_b"), texts, strict=True):
            if isinstance(row.value, Mapping) and row.value.get(column, text) != text:
                raise DataError(
                    f"{name}:{row.line}: {column} is not that of the triples; give answers to these, in order"
                )
    return SystemAnswers(name, "answers", labels, fitting, scores)


def _from_submission(name: str, labeled: Triples, labels: Bools, submitted: SubmissionOptions) -> SystemAnswers:
    """Answer by the part of a submission that is of the triples' track: its answers or its vectors."""
    from narrlit.submission import read_submission

    answers, vectors = read_submission(Path(name))
    tracks: list[Track] = []
    if answers is not None:
        tracks.append("a")
    if vectors is not None:
        tracks.append("b")
    stories = submitted.stories
    scored = submitted.track or _track_of(labeled, stories, tracks)
    if scored is None:
        raise OptionError(
            f"{name} holds answers (Track A) and vectors (Track B): give --track a if the triples are of Track A, or "
            "--stories FILE, the stories of Track B, if they are of Track B"
        )
    if scored not in tracks:
        cause = "by --track" if submitted.track else f"since {stories} holds their stories"
        raise OptionError(
            f"{name} holds Track {tracks[0].upper()} alone, and the triples are of Track {scored.upper()} {cause}: "
            f"leave {name} out, or give --track {tracks[0]} if it answers these triples"
        )
    flags = {"track": scored.upper()}
    if scored == "b":
        return replace(_from_vectors(name, "submission", labeled, labels, vectors, stories), flags=flags)
    return SystemAnswers(name, "submission", labels, _fitting(name, answers or [], labeled), flags=flags)


def _track_of(labeled: Triples, stories: str | None, tracks: Sequence[Track]) -> Track | None:
    """Find the track of triples: b where the file of Track B's stories has all of theirs; None without that file.

    Where these do not tell, a submission of one track answers by that.
    """
    if stories is not None:
        texts = {story.text for story in read_stories(stories, strict=True)}
        if texts.issuperset(_texts(labeled)):
            return "b"
    if len(tracks) == 1:
        return tracks[0]
    return None if stories is None else "a"


def _texts(labeled: Triples) -> list[str]:
    """Texts of anchor, A and B of each triple, as they are in their file (3 N)."""
    return [labeled.stories[index].source_text for index in labeled.indices.ravel().tolist()]


def _from_vectors(
    name: str, kind: Kind, labeled: Triples, labels: Bools, vectors: Any, stories: str | None
) -> SystemAnswers:
    """Look up each triple's vectors by the texts of the file of stories."""
    from narrlit.submission import check_vectors

    if stories is None:
        raise OptionError(f"{name} holds vectors: give --stories FILE, whose row i is the story of vector i")
    if not isinstance(vectors, np.ndarray) or vectors.ndim != 2 or vectors.dtype.kind not in "fiu":
        raise DataError(f"{name}: one array of numbers, stories x dimension, is needed (numpy.save)")
    check_vectors(vectors, name)
    texts = read_stories(stories, strict=True)
    if len(vectors) != len(texts):
        raise DataError(f"{name} has {len(vectors)} vectors, {stories} {len(texts)} stories; give the file they are of")
    row_of = {story.text: row for row, story in enumerate(texts)}
    needed = _texts(labeled)
    absent = next((row for row, text in enumerate(needed) if text not in row_of), None)
    if absent is not None:
        raise DataError(
            f"{stories} lacks the story {printable(needed[absent], 60)!r} of triple {absent // 3 + 1}: give the "
            f"stories of these triples, or leave {name} out"
        )
    chosen = vectors[[row_of[text] for text in needed]].astype(np.float32).reshape(len(labeled), 3, -1)
    return SystemAnswers.scored(name, kind, labels, triple_cosines(chosen), vectors=chosen)


class StoryVectors:
    """Embeddings by a model, kept on disk by content; the model is loaded only if one is missing."""

    def __init__(
        self, model: str, use: LoadOptions, read: StoryOptions, sentences: bool = False, root: str = CACHE
    ) -> None:
        """Name the model; `sentences`: single sentences are embedded, which not all models can."""
        self._model, self._read, self._sentences, self._root = model, read, sentences, Path(root)
        self._use = ModelOptions(**{**vars(use), "model": model})

    def __call__(self, stories: Sequence[Story] | Sequence[str], roles: Sequence[Role]) -> FloatArray:
        """Embed N stories or texts, each in its role, (N, D)."""
        from narrlit.cache.storage import read_arrays, space_folder

        space = self._space()
        for shared in (True, False):
            found = read_arrays(space_folder(self._root, space), _keys(space, stories, roles, shared))
            if found is not None:
                return found
        return self._computed(stories, roles)

    def _computed(self, stories: Sequence[Story] | Sequence[str], roles: Sequence[Role]) -> FloatArray:
        from narrlit.cache.filling import fill
        from narrlit.cache.storage import open_cache
        from narrlit.models.embedding import Coverage, embed_roles, unique

        encoder = self._read.encoder(self._use)
        if self._sentences:
            require_text_encoder(encoder)
        space = self._space()  # a model of a hub has a revision now
        keys, inverse = unique(_keys(space, stories, roles, encoder.symmetric))
        first = np.unique(inverse, return_index=True)[1]
        coverage = Coverage()

        def embed(positions: list[int]) -> "Tensor":
            """Embed what is missing."""
            import torch

            nonlocal coverage
            rows = first[positions].tolist()
            vectors, read = embed_roles(encoder, [stories[i] for i in rows], [roles[i] for i in rows], progress=False)
            coverage += read
            return torch.from_numpy(vectors)

        cache = open_cache(self._root, space)
        say(f"{self._model}: embedding {len(cache.missing(keys))} of {len(keys)} different texts")
        fill(cache, keys, embed)
        unit = ("sentence", "sentences") if self._sentences else encoder.unit
        say_truncated(coverage, encoder.max_length, *unit)
        embeddings: FloatArray = cache.mapped(keys)[inverse].numpy()
        return embeddings

    def _space(self) -> dict[str, Any]:
        """Describe what decides an embedding but for the text and its role."""
        from narrlit.cache.storage import model_identity

        name, files = model_identity(self._model)
        settings: dict[str, Any] = {"fusion": self._read.fusion}
        if self._read.postprocess is not None:  # fitted on stories of files, or on those that are embedded
            paths = f"{self._read.fit_on or ''},{self._read.views or ''}".split(",")
            fitted = [file_digest(path.strip()) for path in paths if path.strip()]
            texts = json.dumps(sorted({story.source_text for story in self._read._embedded}))
            settings["fit"] = [asdict(self._read), fitted, hashlib.sha256(texts.encode()).hexdigest()]
        if self._use.long != "truncate":
            settings["long"] = self._use.long
        if self._use.precision is not None:
            settings["precision"] = self._use.chosen_precision()  # what `auto` is differs from machine to machine
        return {"model": name, "files": files, "max_length": self._use.max_length, **settings, "stored": "float32"}


def _keys(
    space: dict[str, Any], stories: Sequence[Story] | Sequence[str], roles: Sequence[Role], shared: bool
) -> list[bytes]:
    """Content keys of stories in their roles; `shared`: all roles have the same prompt."""
    from narrlit.cache.storage import content_keys

    texts = [
        story
        if isinstance(story, str)
        else story.text
        if story.views is None
        else json.dumps([story.text, *story.views.texts])
        for story in stories
    ]
    if shared:
        return content_keys({**space, "role": "any"}, texts)
    by_role = {role: content_keys({**space, "role": role}, texts) for role in set(roles)}
    return [by_role[role][row] for row, role in enumerate(roles)]


def answer_rows(systems: Iterable[SystemAnswers], labeled: Triples) -> list[dict[str, Any]]:
    """Tabulate answers, a row a triple: its number from 1, its label, and by system scores, margin and right."""
    rows: list[dict[str, Any]] = [
        {"row": row, "anchor": printable(anchor, 60), "text_a_is_closer": bool(label)}
        for row, ((anchor, _, _), label) in enumerate(zip(labeled.texts(), labeled.labels == 1, strict=True), 1)
    ]
    for system in systems:
        for index, row in enumerate(rows):
            row[f"{system.name}.answers_a"] = bool(system.answers[index])
            if system.scores is not None and system.margin is not None:
                row[f"{system.name}.score_a"], row[f"{system.name}.score_b"] = system.scores[index].tolist()
                row[f"{system.name}.margin"] = float(system.margin[index])
            row[f"{system.name}.right"] = bool(system.correct[index])
    return rows
