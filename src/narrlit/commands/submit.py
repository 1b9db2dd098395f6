"""narrlit submit: write or check a submission to the shared task."""

from collections.abc import Iterable, Mapping
from typing import Annotated, Any

import narrlit
from narrlit.commands.options import ModelOptions, ScorerOptions, StoryOptions
from narrlit.console import say
from narrlit.data.rows import Layout
from narrlit.errors import OptionError
from narrlit.files import Output

DEFAULT = "submission.zip"


def _files(arguments: Mapping[str, Any]) -> Iterable[str]:
    """List the file to write; --check writes none."""
    return [] if arguments["check"] is not None else [arguments["out"] or DEFAULT]


def submit(  # noqa: PLR0913 (options)
    *,
    loading: ModelOptions,
    reading: StoryOptions,
    files: Layout,
    scoring: ScorerOptions,
    track_a: str | None = None,
    track_b: str | None = None,
    answers: str | None = None,
    out: Annotated[str | None, Output(written=_files)] = None,
    check: str | None = None,
) -> None:
    """Write a submission (zip) for the test files, or check one.

    Args:
        loading: the model.
        reading: how the model reads a story: views, pseudonyms, fusion and post-processing.
        files: columns and lines of the file of Track B.
        scoring: measure of similarity for Track A.
        track_a: file of the triples of Track A.
        track_b: file of the stories of Track B.
        answers: file of answers to Track A, used instead of the model's: text_a_is_closer in JSON Lines or CSV, as
            `narrlit judge` and `narrlit predict` write it, or a submission.
        out: zip file to write; default: submission.zip.
        check: zip file to check instead of writing one; with --track-a or --track-b, its numbers of rows are checked
            too.
    """
    encodes = loading != ModelOptions() or reading != StoryOptions()
    if check is not None:
        if encodes or answers is not None or out is not None:
            raise OptionError("options_of_check")
        say(str(narrlit.check_submission(check, track_a=track_a, track_b=track_b, layout=files)))
        return
    if answers is not None and scoring.scorer != "cosine":
        raise OptionError("answers_and_scorer")
    if loading.model is None and encodes:
        raise OptionError("submission_needs_model")
    system = None if loading.model is None else scoring.measure(reading.load(loading.model, loading))
    submission = narrlit.submit(
        system,
        track_a=track_a,
        track_b=track_b,
        answers=answers,
        layout=files,
        out=out or DEFAULT,
        progress=True,
    )
    say(str(submission))
