"""Submission to the shared task: a zip with track_a.jsonl and/or track_b.npy at its root, rows in input order."""

import io
import json
import math
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import TypeAdapter, ValidationError

from narrlit.console import counted, say, say_truncated
from narrlit.data.readers import LABEL_COLUMN, Stories, read_stories, read_triples
from narrlit.data.rows import Layout, read_rows
from narrlit.data.schema import FloatArray, Story, Triples
from narrlit.encoding.story_encoder import StoryEncoder
from narrlit.errors import DataError, ModelError, NarrlitError, OptionError, on_interrupt, reading
from narrlit.files import atomic_path
from narrlit.measures import Similarity, measure_of
from narrlit.models.affine_steps import fit_steps
from narrlit.models.config import parse_steps

TRACK_A, TRACK_B, TRACK_B_LINES = "track_a.jsonl", "track_b.npy", "track_b.jsonl"
DIMENSIONS_ALLOWED = range(10, 8193)
LARGEST_FILE = 2**30
"""Bytes of an unpacked file: 30,000 embeddings of the largest dimension. A small zip can unpack to terabytes."""
SAMPLE = 16
"""Number of stories that are checked for independence of other stories."""
TOLERANCE = 1e-5
"""Largest difference of unit vectors in float32 that counts as equal."""


class Tracks(NamedTuple):
    """Results of both tracks.

    Attributes:
        answers: answer to each triple of Track A, True if candidate A is closer; None without Track A.
        embeddings: (N, D) vectors of the stories of Track B; None without Track B.
    """

    answers: list[bool] | None = None
    embeddings: FloatArray | None = None


class Answers(NamedTuple):
    """Answers to N triples.

    Attributes:
        choices: True where candidate A is closer.
        scores: (N, 2) of A and B; None if they are not known.
    """

    choices: list[bool]
    scores: NDArray[np.float64] | None = None


@dataclass(frozen=True)
class SubmissionContents:
    """Contents of a valid submission; None for an absent track."""

    track_a_rows: int | None
    track_b_rows: int | None
    dimension: int | None

    @classmethod
    def of(cls, tracks: Tracks) -> "SubmissionContents":
        """Count the rows of both tracks."""
        track_a_rows = None if tracks.answers is None else len(tracks.answers)
        if tracks.embeddings is None:
            return cls(track_a_rows, None, None)
        track_b_rows, dimension = tracks.embeddings.shape
        return cls(track_a_rows, track_b_rows, dimension)

    def check_rows(self, rows_a: int | None, rows_b: int | None, name: Path) -> None:
        """Check that each track has as many rows as its test file, if that number is known.

        Args:
            rows_a: rows that Track A must have, if known.
            rows_b: rows that Track B must have, if known.
            name: name of the zip, for the message.

        Raises:
            DataError: if the numbers differ.
        """
        if rows_a is not None and self.track_a_rows != rows_a:
            raise DataError("rows_of_track", path=name, track=TRACK_A, n=self.track_a_rows or 0, needed=rows_a)
        if rows_b is not None and self.track_b_rows != rows_b:
            raise DataError("rows_of_track", path=name, track="Track B", n=self.track_b_rows or 0, needed=rows_b)

    def __str__(self) -> str:
        """Describe the rows of each track."""
        tracks = []
        if self.track_a_rows is not None:
            tracks.append(f"Track A {self.track_a_rows} rows")
        if self.track_b_rows is not None:
            tracks.append(f"Track B {self.track_b_rows} rows of {self.dimension} dimensions")
        return ", ".join(tracks)


@dataclass(frozen=True, eq=False)
class Submission:
    """Valid submission.

    Attributes:
        path: the zip.
        contents: rows of each track.
        answers: answer to each triple of Track A, True if candidate A is closer; None without Track A.
        embeddings: (N, D) vectors of the stories of Track B; None without Track B.
    """

    path: Path
    contents: SubmissionContents
    answers: list[bool] | None
    embeddings: FloatArray | None

    def __str__(self) -> str:
        """Describe the contents of the zip."""
        return f"{self.path}: valid, {self.contents}"


def submit(
    system: str | PathLike[str] | StoryEncoder | Similarity | None = None,
    *,
    track_a: str | Path | Triples | None = None,
    track_b: str | Path | Stories | None = None,
    answers: str | Path | None = None,
    layout: Layout = Layout(),
    out: str | Path = "submission.zip",
    progress: bool = False,
) -> Submission:
    """Write a submission to the shared task from its test files.

    Args:
        system: a model (run, folder, checkpoint, hub id, `minilm`), an encoder from `narrlit.load`, or a measure of
            `narrlit.measures` with an encoder; None if only `answers` are submitted.
        track_a: the triples of Track A.
        track_b: the stories of Track B; the vector of a story must not depend on the others.
        answers: file of answers to Track A, used instead of the system's: text_a_is_closer in JSON Lines or CSV, as
            `narrlit judge` and `narrlit predict` write it, or a submission.
        layout: columns and lines of the file of Track B.
        out: zip to write.
        progress: print how files were read, and show a progress bar, on stderr.

    Returns:
        A `Submission`: `.path`, `.contents`, `.answers`, `.embeddings`.

    Raises:
        DataError: if a file can't be read, or the answers belong to other triples.
        ModelError: if the model can't be loaded, or a vector of Track B depends on other stories.
        OptionError: if there is nothing to write, or a system is missing.
    """
    if track_a is None and track_b is None:
        raise OptionError("no_track")
    if answers is not None and track_a is None:
        raise OptionError("answers_need_track")
    if (system is None) != (answers is not None and track_b is None):
        raise OptionError("no_model" if system is None else "answers_replace_model")
    triples, stories = _read_tracks(track_a, track_b, layout)
    choices = None
    if answers is not None and triples is not None:
        choices = _read_answers_to(triples, Path(answers))
    tracks = Tracks(choices)
    target = Path(out)
    if system is not None:
        measure = measure_of(system)
        unanswered = triples if choices is None else None
        with on_interrupt(_state_after_interrupt(measure, target)):
            computed = _compute(measure, unanswered, stories, progress)
        tracks = Tracks(computed.answers if choices is None else choices, computed.embeddings)
    contents = write_submission(target, *tracks, _count(triples), _count(stories))
    return Submission(target, contents, *tracks)


def check_submission(
    path: str | Path,
    *,
    track_a: str | Path | Triples | None = None,
    track_b: str | Path | Stories | None = None,
    layout: Layout = Layout(),
) -> Submission:
    """Check a submission to the shared task: file names, rows, types, dimension, finite and non-zero vectors.

    Args:
        path: the zip.
        track_a: the triples of Track A, each of which needs an answer.
        track_b: the stories of Track B, each of which needs a vector.
        layout: columns and lines of the file of Track B.

    Returns:
        A `Submission`: `.path`, `.contents`, `.answers`, `.embeddings`.

    Raises:
        DataError: if the submission is invalid, naming the file inside the zip and the row; or if a test file can't be
            read.

    >>> path = getfixture("tmp_path") / "submission.zip"
    >>> _ = write_submission(path, [True, False], None)
    >>> check_submission(path).answers
    [True, False]
    """
    triples, stories = _read_tracks(track_a, track_b, layout)
    path = Path(path)
    tracks = read_submission(path)
    contents = SubmissionContents.of(tracks)
    contents.check_rows(_count(triples), _count(stories), path)
    return Submission(path, contents, *tracks)


def _read_tracks(
    track_a: str | Path | Triples | None, track_b: str | Path | Stories | None, layout: Layout
) -> tuple[Triples | None, Stories | None]:
    """Read the test files; no row may be dropped, because those of a submission correspond to them."""
    triples = read_triples(track_a, strict=True) if isinstance(track_a, str | Path) else track_a
    stories = read_stories(track_b, strict=True, layout=layout) if isinstance(track_b, str | Path) else track_b
    return triples, stories


def _count(rows: Triples | Stories | None) -> int | None:
    """Count the rows of a test file; None without one."""
    return None if rows is None else len(rows)


def _state_after_interrupt(measure: Similarity, out: Path) -> str:
    """Describe what is kept after an interruption."""
    unchanged = f"{out} is unchanged"
    if measure.encoder is None or measure.encoder.cache is None:
        return unchanged
    return f"finished embeddings are kept in {measure.encoder.cache}: repeat the command to resume; {unchanged}"


def _read_answers_to(triples: Triples, answers: Path) -> list[bool]:
    """Read the answers to triples; refuse answers to triples with other texts."""
    choices = read_answers(answers, len(triples)).choices
    if answers.suffix != ".zip" and triples.report is not None:
        read_triples(triples.report.path, labels=answers)  # compares the texts
    return choices


def _compute(measure: Similarity, triples: Triples | None, stories: Sequence[Story] | None, progress: bool) -> Tracks:
    """Answer triples, and embed stories; the vector of a story must not depend on others."""
    stories_of_triples = [] if triples is None else triples.stories
    measure = measure.fitted_for([*stories_of_triples, *(stories or [])])
    answers = embeddings = None
    if stories is not None:
        encoder = measure.encoder
        if encoder is None:
            raise OptionError("track_needs_model", measure=measure.name)
        if triples is not None:  # before the model is loaded, so that errors in a file of views are found early
            encoder.texts.prepare_triples(triples)
        embeddings = _embed_independently(encoder, list(stories), progress)
    if triples is not None:
        answers = [a > b for a, b in measure.score(triples, progress).tolist()]
    if progress and measure.encoder is not None:
        facts = measure.encoder.facts
        say_truncated(measure.encoder.coverage, facts.max_length, *facts.unit)
    return Tracks(answers, embeddings)


def _embed_independently(encoder: StoryEncoder, stories: list[Story], progress: bool) -> FloatArray:
    """Embed the stories of Track B, and check that no vector depends on other stories."""
    encoder.prepare(stories)
    encoder.require_one_prompt("Track B")
    embeddings = encoder.embed(stories, progress=progress)
    summary = check_independence(encoder, stories, embeddings)
    if progress:
        say(summary)
    return embeddings


def write_submission(
    path: Path,
    track_a: list[bool] | None,
    track_b: FloatArray | None,
    rows_a: int | None = None,
    rows_b: int | None = None,
) -> SubmissionContents:
    """Write a submission zip, and check it before it replaces an earlier file.

    Args:
        path: the zip.
        track_a: answer to each triple, True if candidate A is closer.
        track_b: (N, D) embeddings of the stories.
        rows_a: rows that Track A must have, if known.
        rows_b: rows that Track B must have, if known.

    Raises:
        DataError: as `check_submission` does; an earlier file is kept.
    """
    with atomic_path(path) as temporary:
        with zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED) as archive:
            if track_a is not None:
                lines = [json.dumps({LABEL_COLUMN: answer}) + "\n" for answer in track_a]
                archive.writestr(TRACK_A, "".join(lines))
            if track_b is not None:
                buffer = io.BytesIO()
                np.save(buffer, track_b, allow_pickle=False)
                archive.writestr(TRACK_B, buffer.getvalue())
        contents = SubmissionContents.of(read_submission(temporary, path))
        contents.check_rows(rows_a, rows_b, path)
        return contents


def read_submission(path: Path, name: Path | None = None) -> Tracks:
    """Read a submission zip: Track A's answers (True: A is closer) and Track B's (N, D) embeddings, None if absent.

    Args:
        path: the zip.
        name: name of the zip in messages, if not `path`.

    Raises:
        DataError: as `check_submission` does; the number of rows is not checked.
    """
    name = name or path
    with reading("unreadable_submission", name), zipfile.ZipFile(path) as archive:
        members = archive.namelist()
        _check_members(members, name)
        contents = {member: _unpack(archive, member, f"{name}/{member}") for member in members}
    answers = embeddings = None
    if TRACK_A in contents:
        answers = _parse_answers(contents[TRACK_A], f"{name}/{TRACK_A}")
    if TRACK_B in contents:
        embeddings = _parse_array(contents[TRACK_B], f"{name}/{TRACK_B}")
    elif TRACK_B_LINES in contents:
        embeddings = _parse_lines_of_embeddings(contents[TRACK_B_LINES], f"{name}/{TRACK_B_LINES}")
    return Tracks(answers, embeddings)


def _check_members(members: Sequence[str], name: Path) -> None:
    """Refuse a zip that is empty, contains other files than those of the tracks, or two files of Track B."""
    unknown = sorted(set(members) - {TRACK_A, TRACK_B, TRACK_B_LINES})
    if unknown or not members:
        contents = ", ".join(unknown[:5]) or "nothing"
        raise DataError("unknown_member", path=name, found=contents, known=[TRACK_A, TRACK_B, TRACK_B_LINES])
    if TRACK_B in members and TRACK_B_LINES in members:
        raise DataError("two_members", path=name, first=TRACK_B, second=TRACK_B_LINES)


def _parse_answers(content: bytes, where: str) -> list[bool]:
    """Parse the answers of track_a.jsonl."""
    rows = _parse_json_lines(content, where)
    for number, row in enumerate(rows, 1):
        if not isinstance(row, dict) or not isinstance(row.get(LABEL_COLUMN), bool):
            raise DataError("answer_not_true_or_false", path=where, line=number, column=LABEL_COLUMN)
    return [row[LABEL_COLUMN] for row in rows]


def _parse_array(content: bytes, where: str) -> FloatArray:
    """Parse the embeddings of track_b.npy."""
    with reading("broken_array", where):
        embeddings: FloatArray = np.load(io.BytesIO(content), allow_pickle=False)
    _check_embeddings(embeddings, where)
    return embeddings


def _parse_lines_of_embeddings(content: bytes, where: str) -> FloatArray:
    """Parse the embeddings of track_b.jsonl."""
    with reading("broken_embeddings", where):
        rows = _parse_json_lines(content, where)
        embeddings = np.array([row["embeddings"] for row in rows], dtype=np.float64)
    _check_embeddings(embeddings, where)
    return embeddings.astype(np.float32)


def read_answers(path: Path, rows: int | None = None) -> Answers:
    """Read answers to triples (True: A is closer), and the scores (N, 2) of A and B if the file has them.

    Args:
        path: text_a_is_closer in JSON Lines, CSV or TSV, as `narrlit judge` and `narrlit predict` write it, or a
            submission (.zip).
        rows: number of triples, which must equal the number of answers, if known.

    Raises:
        DataError: if the file can't be read, an answer is neither true nor false, or the number of answers differs; the
            message names file and line.
    """
    if path.suffix == ".zip":
        choices = read_submission(path).answers
        if not choices:
            raise DataError("no_answers_in_submission", path=path, member=TRACK_A)
        answers = Answers(choices)
    else:
        answers = _read_answer_rows(path)
    if rows is not None and len(answers.choices) != rows:
        raise DataError("number_of_answers", path=path, answers=len(answers.choices), triples=rows)
    return answers


def _read_answer_rows(path: Path) -> Answers:
    """Read a file of answers; the scores are None unless all rows have them."""
    choices: list[bool] = []
    scores: list[tuple[float, float]] = []
    boolean = TypeAdapter(bool)
    for row in read_rows(path).rows:
        cells = row.cells
        has_scores = "score_a" in cells or "score_b" in cells
        with reading("broken_answer", f"{path}:{row.line}"):
            if has_scores:
                scores.append((_finite(cells["score_a"]), _finite(cells["score_b"])))
        try:
            choices.append(boolean.validate_python(cells[LABEL_COLUMN]))
        except (KeyError, ValidationError) as error:
            raise DataError("answer_not_true_or_false", path=path, line=row.line, column=LABEL_COLUMN) from error
    all_have_scores = len(scores) == len(choices)
    return Answers(choices, np.array(scores) if all_have_scores else None)


def _finite(value: Any) -> float:
    """Convert a value to a number; refuse NaN and infinity."""
    number = float(value)
    if not math.isfinite(number):
        raise ValueError(f"{number} is not a finite number")
    return number


def _unpack(archive: zipfile.ZipFile, member: str, where: str) -> bytes:
    """Read a file of a zip; refuse one that is too large."""
    with archive.open(member) as file:
        declared_size = archive.getinfo(member).file_size
        # The declared size may be wrong; no more than the maximum is read.
        content = b"" if declared_size > LARGEST_FILE else file.read(LARGEST_FILE + 1)
    if max(declared_size, len(content)) > LARGEST_FILE:
        raise DataError("large_member", path=where, limit=LARGEST_FILE)
    return content


def _parse_json_lines(content: bytes, where: str) -> list[Any]:
    """Parse JSON Lines; errors name the line."""
    rows = []
    lines = content.decode("utf-8", "replace").rstrip("\n").split("\n")
    for number, line in enumerate(lines, 1):
        with reading("broken_row", f"{where}:{number}"):
            rows.append(json.loads(line))
    return rows


def _check_embeddings(embeddings: object, where: str) -> None:
    """Check that the embeddings are an array of vectors with a dimension that the task allows."""
    if not isinstance(embeddings, np.ndarray) or embeddings.ndim != 2 or embeddings.dtype.kind not in "fiu":
        raise DataError("not_an_array", path=where)
    if embeddings.shape[1] not in DIMENSIONS_ALLOWED:
        raise DataError("dimension_of_task", path=where, dimension=embeddings.shape[1])
    check_vectors(embeddings, where)


def check_vectors(vectors: NDArray[np.generic], where: str) -> None:
    """Check that vectors (N, D) of any number type have cosines in float32.

    Raises:
        DataError: naming the first row that contains NaN, infinity or a number beyond the range of float32, or is all
            zeros in float32.
    """
    with np.errstate(over="ignore"):
        single = vectors.astype(np.float32)
    faulty_rows = {
        "contains NaN or infinity": ~np.isfinite(vectors).all(axis=1),
        "contains a number beyond the range of float32": ~np.isfinite(single).all(axis=1),
        "is all zeros in float32 and has no cosine": ~single.any(axis=1),
    }
    for fault, is_faulty in faulty_rows.items():
        if is_faulty.any():
            number = int(np.argmax(is_faulty)) + 1
            raise DataError("unusable_vector", path=where, row=number, problem=fault)


def check_independence(encoder: StoryEncoder, stories: Sequence[Story], embeddings: FloatArray | None = None) -> str:
    """Check that a story's vector does not depend on the stories it is embedded with, as Track B requires.

    Args:
        encoder: embeds the stories.
        stories: all stories, as they are in their file.
        embeddings: (N, D) vectors to be submitted, if any, with which those of the sample are compared.

    Returns:
        A sentence with the largest difference found.

    Raises:
        ModelError: if a vector depends on other stories; the message names the first step that causes this.
    """
    # Half precision rounds differently in other batches.
    return check_steps(encoding_steps(encoder), stories, embeddings, encoder.facts.rounding_error)


def check_steps(
    steps: "Sequence[Step]",
    stories: Sequence[Story],
    embeddings: FloatArray | None = None,
    rounding_error: float = 0.0,
) -> str:
    """Check that the result of each step for a story does not depend on the batch, as `check_independence` does.

    A sample of all lengths is encoded step by step: in reverse order, in two batches, and story by story.

    Args:
        steps: as `encoding_steps` returns them.
        stories: all stories, as they are in their file.
        embeddings: (N, D) vectors to be submitted, if there are any.
        rounding_error: largest difference that rounding causes between batches.

    Returns:
        A sentence with the largest difference.

    Raises:
        ModelError: if a vector depends on other stories; the message names the first step that causes this.
    """
    sample = _sample_by_length(stories)
    reverse = BatchedRun("in reverse order", [sample[::-1]], stories)
    halves = BatchedRun("in other batches", [sample[::2], sample[1::2]], stories)
    alone = BatchedRun("alone", [[index] for index in sample], stories)
    tolerance = max(TOLERANCE, rounding_error)
    differences = [0.0]
    for name, function in steps:
        for run in (reverse, halves, alone):
            run.apply(name, function)
            differences.append(_compare(sample, reverse.values, run.values, tolerance, name, run.name))
    if embeddings is not None:
        step, where = "a step over all stories", "from the vector to be written"
        differences.append(_compare(sample, embeddings, alone.values, tolerance, step, where))
    return (
        f"Track B: vectors of {counted(len(sample), 'story')} alone, in other batches and in reverse order "
        f"differ by at most {max(differences):.0g}"
    )


def _compare(
    sample: Sequence[int],
    first: Mapping[int, Any] | FloatArray,
    second: Mapping[int, Any],
    tolerance: float,
    step: str,
    where: str,
) -> float:
    """Return the largest difference of stories or vectors; refuse one above the tolerance.

    Args:
        sample: indices of the stories.
        first: stories or vectors by the index of their story.
        second: the same from other batches.
        tolerance: largest difference that is allowed.
        step: name of the last step, for the message.
        where: where the vector differs, for the message.
    """
    largest = 0.0
    for index in sample:
        difference = _difference(first[index], second[index])
        if not difference <= tolerance:  # or NaN
            raise _dependence(index, step, where, difference)
        largest = max(largest, difference)
    return largest


def _sample_by_length(stories: Sequence[Story]) -> list[int]:
    """Choose stories evenly spaced by length, as indices."""
    by_length = np.argsort([len(story.text) for story in stories], kind="stable")
    positions = np.unique(np.linspace(0, len(stories) - 1, SAMPLE).round().astype(int))
    indices: list[int] = by_length[positions].tolist()
    return indices


class BatchedRun:
    """Sample of stories that is encoded step by step, in batches.

    Attributes:
        name: how the sample is divided into batches, for messages.
        batches: indices of stories.
        values: story or vector after the last step, by index.
    """

    def __init__(self, name: str, batches: Sequence[Sequence[int]], stories: Sequence[Story]) -> None:
        self.name = name
        self.batches = [batch for batch in batches if batch]
        self.values: dict[int, Any] = {}
        for batch in self.batches:
            self.values.update((index, stories[index]) for index in batch)

    def apply(self, name: str, step: "Callable[[Any], Any]") -> None:
        """Apply a step to every batch.

        Raises:
            ModelError: if the step fails for a batch.
        """
        for batch in self.batches:
            try:
                results = step([self.values[index] for index in batch])
                self.values.update(zip(batch, results, strict=True))
            except NarrlitError as error:
                raise ModelError("step_fails", step=name, n=len(batch), file=self.name, cause=error) from error


Step = tuple[str, Callable[[Any], Any]]
"""Name of a step, and its function from a batch of stories to stories or vectors (N, D), or from vectors to vectors."""


def encoding_steps(encoder: StoryEncoder) -> list[Step]:
    """Return the steps from the stories of a file to their vectors; none of them reads the embedding cache."""
    steps: list[Step] = []
    texts = encoder.texts
    if texts.views is not None:
        steps.append(("views", replace(texts, pseudonyms=None).prepare))
    if texts.pseudonyms is not None:
        steps.append((f"pseudonymization with scope {texts.pseudonyms.scope}", replace(texts, views=None).prepare))
    computing = encoder.without_cache()
    transductive = encoder.is_transductive
    if transductive:
        computing = computing.without_postprocessing()

    def embed_prepared(stories: Sequence[Story]) -> FloatArray:
        return computing.embed_prepared(stories, ["story"] * len(stories))

    steps.append(("the encoder", embed_prepared))
    if transductive and encoder.postprocessing is not None:
        postprocessing = parse_steps(encoder.postprocessing.steps)

        def fit_and_apply(batch: FloatArray) -> NDArray[np.float64]:
            return fit_steps(postprocessing, batch)(batch)

        steps.append(("post-processing fitted on the batch", fit_and_apply))
    return steps


def _dependence(index: int, name: str, where: str, difference: float) -> ModelError:
    """Describe the story and the step that makes its vector depend on others; an infinite difference is omitted."""
    amount = f" by {difference:.0e}" if np.isfinite(difference) else ""
    return ModelError("vector_depends_on_others", row=index + 1, where=where, amount=amount, step=name)


def _difference(first: Any, second: Any) -> float:
    """Compute the largest difference of two unit vectors; for stories 0 if they are equal, else infinity."""
    if isinstance(first, Story):
        return 0.0 if first == second else float("inf")
    return float(np.abs(_unit(first) - _unit(second)).max())


def _unit(vector: ArrayLike) -> NDArray[np.float64]:
    """Scale a vector to the length 1."""
    length = float(np.linalg.norm(vector))
    return np.asarray(vector, dtype=np.float64) / max(length, 1e-12)
