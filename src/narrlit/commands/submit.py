"""narrlit submit: write or check a submission to the shared task."""

from pathlib import Path
from typing import TYPE_CHECKING

from narrlit.commands.embed import check_embeddings, refuse_role_prompts
from narrlit.console import say, say_truncated
from narrlit.data.readers import read_stories, read_triples
from narrlit.errors import OptionError, on_interrupt
from narrlit.files import check_writable
from narrlit.options import ModelOptions, StoryOptions

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
        out: zip to write.
        check: zip to check instead; with --track-a or --track-b also its numbers of rows.
    """
    if check is not None and (use != ModelOptions() or read != StoryOptions()):
        raise OptionError("--check reads a zip alone: leave --model and its options out")
    if check is None:
        if use.model is None:
            raise OptionError("give --model M, or --check ZIP")
        if not track_a and not track_b:
            raise OptionError("give --track-a FILE, --track-b FILE or both")
        check_writable(out)
    # A submission's rows correspond to the test file's rows: none may be dropped.
    triples = read_triples(track_a, strict=True) if track_a else None
    stories = read_stories(track_b, strict=True) if track_b else None
    archive = Path(out if check is None else check)
    if check is None:
        with on_interrupt(f"nothing is kept; {out} is as it was"):
            contents = _write(use, read, triples, stories, archive)
    else:
        from narrlit.submission import check_submission

        contents = check_submission(archive, _rows(triples), _rows(stories))
    parts = []
    if contents.track_a_rows is not None:
        parts.append(f"Track A {contents.track_a_rows} rows")
    if contents.track_b_rows is not None:
        parts.append(f"Track B {contents.track_b_rows} rows of {contents.dimension} dimensions")
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

    # Prepared before the model is loaded: a mistake in a file of views costs no waiting.
    prepared = None if triples is None else read.triples(triples.records)
    texts = None if stories is None else read.stories(stories.records)
    encoder = read.encoder(use)
    if texts is not None:
        refuse_role_prompts(encoder, str(use.model), "Track B needs one prompt for both")
    answers = embeddings = None
    truncated = 0
    if prepared is not None:
        scores, truncated = cosine_scores(encoder, prepared)
        answers = [a > b for a, b in scores]
    if texts is not None:
        embeddings, more = embed(encoder, texts)
        truncated += more
        check_embeddings(embeddings, str(use.model))
    say_truncated(truncated, encoder.max_length, *encoder.pieces)
    return write_submission(out, answers, embeddings, _rows(triples), _rows(stories))


def _rows(reading: "Reading[Triple] | Reading[Story] | None") -> int | None:
    return len(reading.records) if reading else None
