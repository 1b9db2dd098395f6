"""narrlit submit: write or check a submission to the shared task."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any

from narrlit.console import say
from narrlit.data.readers import read_stories, read_triples
from narrlit.errors import OptionError, on_interrupt
from narrlit.files import Output
from narrlit.options import CACHE, InputOptions, ModelOptions, ScorerOptions, StoryOptions
from narrlit.submission import check_submission
from narrlit.submission import submit as write

DEFAULT = "submission.zip"


def _files(arguments: Mapping[str, Any]) -> Iterable[str]:
    """List the file that is written; checking writes none."""
    return [] if arguments["check"] is not None else [arguments["out"] or DEFAULT]


def submit(  # noqa: PLR0913 - its parameters are the command's options
    *,
    use: ModelOptions,
    read: StoryOptions,
    inputs: InputOptions,
    track_a: str | None = None,
    track_b: str | None = None,
    answers: str | None = None,
    scoring: ScorerOptions,
    out: Annotated[str | None, Output(written=_files)] = None,
    check: str | None = None,
) -> None:
    """Write a submission zip from the test files, or check one.

    Args:
        use: the model.
        read: what it reads of a story.
        inputs: how Track B's file is read.
        track_a: Track A's triples.
        track_b: Track B's stories.
        answers: file of Track A's answers, which replace the model's: text_a_is_closer in JSON Lines or CSV, as narrlit
            judge and narrlit predict write it, or a submission.
        scoring: similarity of Track A's stories.
        out: zip to write; default: submission.zip.
        check: zip to check instead; with --track-a or --track-b also its numbers of rows.
    """
    if check is not None:
        if use != ModelOptions() or read != StoryOptions() or answers is not None or out is not None:
            raise OptionError("--check reads a zip alone: leave --model, --answers, --out and their options out")
        triples = read_triples(track_a, strict=True) if track_a else None
        stories = read_stories(track_b, strict=True, layout=inputs.layout) if track_b else None
        rows = (None if triples is None else len(triples), None if stories is None else len(stories))
        say(f"{check}: valid, {check_submission(Path(check), *rows)}")
        return
    if use.model is None and read != StoryOptions():
        raise OptionError("--views, --pseudonymize, --postprocess and their like need --model")
    if answers is not None and scoring.scorer == "meanmax":
        raise OptionError("--answers replace those of --scorer: leave one out")
    with on_interrupt(f"finished embeddings are kept in {CACHE}; {out or DEFAULT} is as it was"):
        system = None if use.model is None else scoring.measure(read.load(use.model, use))
        stories = read_stories(track_b, strict=True, layout=inputs.layout) if track_b else None
        say(str(write(system, track_a=track_a, track_b=stories, answers=answers, out=out or DEFAULT, progress=True)))
