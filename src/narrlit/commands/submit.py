"""narrlit submit: write or check a submission to the shared task."""

from pathlib import Path

from narrlit.console import say, say_truncated
from narrlit.data.readers import read_stories, read_triples
from narrlit.errors import OptionError, on_interrupt
from narrlit.files import check_writable
from narrlit.options import ModelOptions, StoryOptions
from narrlit.submission import check_submission, write_submission


def submit(
    *,
    use: ModelOptions,
    read: StoryOptions,
    track_a: str | None = None,
    track_b: str | None = None,
    out: str | None = None,
    check: str | None = None,
) -> None:
    """Write a submission zip from the test files, or check one.

    Args:
        use: the model.
        read: what it reads of a story.
        track_a: Track A's triples.
        track_b: Track B's stories.
        out: zip to write; default: submission.zip.
        check: zip to check instead; with --track-a or --track-b also its numbers of rows.
    """
    if check is not None and (use != ModelOptions() or read != StoryOptions()):
        raise OptionError("--check reads a zip alone: leave --model and its options out")
    out = out or "submission.zip"
    if check is None:
        if use.model is None:
            raise OptionError("give --model M, or --check ZIP")
        if not track_a and not track_b:
            raise OptionError("give --track-a FILE, --track-b FILE or both")
        check_writable(out)
    # A submission's rows correspond to the test file's rows: none may be dropped.
    triples = read_triples(track_a, strict=True) if track_a else None
    stories = read_stories(track_b, strict=True) if track_b else None
    rows = (None if triples is None else len(triples), None if stories is None else len(stories))
    if check is not None:
        contents = check_submission(Path(check), *rows)
    else:
        from narrlit.models.embedding import embed, score_triples

        with on_interrupt(f"nothing is kept; {out} is as it was"):
            # Prepared before the model is loaded: a mistake in a file of views costs no waiting.
            triples = None if triples is None else read.triples(triples)
            texts = None if stories is None else read.stories(stories)
            encoder = read.encoder(use)
            answers = embeddings = None
            truncated = 0
            if texts is not None:
                encoder.require_one_prompt("Track B")
                embeddings, truncated = embed(encoder, texts)
            if triples is not None:
                scores, more = score_triples(encoder, triples)
                answers = [a > b for a, b in scores.tolist()]
                truncated += more
            say_truncated(truncated, encoder.max_length, *encoder.unit)
            contents = write_submission(Path(out), answers, embeddings, *rows)
    parts = []
    if contents.track_a_rows is not None:
        parts.append(f"Track A {contents.track_a_rows} rows")
    if contents.track_b_rows is not None:
        parts.append(f"Track B {contents.track_b_rows} rows of {contents.dimension} dimensions")
    say(f"{check or out}: valid, {', '.join(parts)}")
