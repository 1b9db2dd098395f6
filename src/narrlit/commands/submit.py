"""narrlit submit: write or check a submission to the shared task."""

from pathlib import Path
from typing import TYPE_CHECKING

from narrlit.commands.devices import say, say_truncated
from narrlit.commands.model_options import ModelOptions
from narrlit.commands.story_options import StoryOptions
from narrlit.data.readers import read_stories, read_triples
from narrlit.errors import OptionError
from narrlit.files import check_writable

if TYPE_CHECKING:
    from narrlit.data.reading import Reading
    from narrlit.data.records import Story, Triple
    from narrlit.submission import Contents


def submit(
    *,
    use: ModelOptions,
    read: StoryOptions,
    track_a: str | None = None,
    track_b: str | None = None,
    out: str = "submission.zip",
    check: str | None = None,
) -> None:
    """Write a submission zip from the test files, or check one.

    Args:
        use: the model.
        read: what it reads of a story.
        track_a: Track A's triples.
        track_b: Track B's stories.
        out: the zip to write.
        check: a zip to check instead; with --track_a or --track_b also against their numbers of rows.
    """
    if check is not None and (use != ModelOptions() or read != StoryOptions()):
        raise OptionError("--check reads a zip that is there: leave --model and all that belongs to it out")
    if check is None:
        if use.model is None:
            raise OptionError("give --model M, or --check ZIP")
        if not track_a and not track_b:
            raise OptionError("give --track-a FILE, --track-b FILE or both")
        check_writable(out)
    # A submission's rows stand for the test file's rows: none may be left out.
    triples = read_triples(track_a, strict=True) if track_a else None
    stories = read_stories(track_b, strict=True) if track_b else None
    archive = Path(out if check is None else check)
    if check is None:
        found = _write(use, read, triples, stories, archive)
    else:
        from narrlit.submission import check_submission

        found = check_submission(archive, _rows(triples), _rows(stories))
    parts = []
    if found.track_a_rows is not None:
        parts.append(f"Track A {found.track_a_rows} rows")
    if found.track_b_rows is not None:
        parts.append(f"Track B {found.track_b_rows} rows of {found.dimension} numbers")
    say(f"{archive}: valid, {', '.join(parts)}")


def _write(
    use: ModelOptions,
    read: StoryOptions,
    triples: "Reading[Triple] | None",
    stories: "Reading[Story] | None",
    out: Path,
) -> "Contents":
    from narrlit.models.embedding import cosine_scores, embed
    from narrlit.submission import write_submission

    # Read before the model is loaded: a mistake in a file of views costs no waiting.
    judged = None if triples is None else read.triples(triples.records)
    texts = None if stories is None else read.stories(stories.records)
    encoder = read.encoder(use)
    if texts is not None:
        encoder.require_one_prompt("Track B")
    answers = vectors = None
    cut = 0
    if judged is not None:
        scores, cut = cosine_scores(encoder, judged)
        answers = [a > b for a, b in scores]
    if texts is not None:
        vectors, more = embed(encoder, texts)
        cut += more
    say_truncated(cut, encoder.max_length, *encoder.pieces)
    return write_submission(out, answers, vectors, _rows(triples), _rows(stories))


def _rows(reading: "Reading[Triple] | Reading[Story] | None") -> int | None:
    return len(reading.records) if reading else None
