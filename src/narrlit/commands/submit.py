"""narrlit submit: write or check a submission to the shared task."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import narrlit
from narrlit.arguments import OPTIONAL, Deferred
from narrlit.commands import opening
from narrlit.console import say
from narrlit.data.rows import Layout
from narrlit.errors import OptionError
from narrlit.files import Output
from narrlit.measures.meanmax import MeanMax
from narrlit.measures.names import ScorerName

if TYPE_CHECKING:
    from narrlit.encoding.story_encoder import StoryEncoder

DEFAULT = "submission.zip"


def _files(arguments: Mapping[str, Any]) -> Iterable[str]:
    """List the file to write; --check writes none."""
    return [] if arguments["check"] is not None else [arguments["out"] or DEFAULT]


def submit(  # noqa: PLR0913 (options)
    *,
    encoder: "Deferred[StoryEncoder]" = OPTIONAL,
    layout: Layout = Layout(),
    scorer: ScorerName = "cosine",
    meanmax: MeanMax = MeanMax(),
    track_a: str | None = None,
    track_b: str | None = None,
    answers: str | None = None,
    out: Annotated[str | None, Output(written=_files)] = None,
    check: str | None = None,
) -> None:
    """Write a submission (zip) for the test files, or check one.

    Args:
        encoder: the model.
        layout: how the file of Track B is read.
        scorer: measure of similarity for Track A; cosine compares embeddings, meanmax compares sentences, passages
            compares the best matching passages.
        meanmax: settings of Mean-Max.
        track_a: file of the triples of Track A.
        track_b: file of the stories of Track B.
        answers: file of answers to Track A, used instead of the model's: text_a_is_closer in JSON Lines or CSV, as
            `narrlit judge` and `narrlit predict` write it, or a submission.
        out: zip file to write; default: submission.zip.
        check: zip file to check instead of writing one; with --track-a or --track-b, its numbers of rows are checked
            too.
    """
    encodes = bool(encoder.changed)
    if check is not None:
        if encodes or answers is not None or out is not None:
            raise OptionError("options_of_check")
        say(str(narrlit.check_submission(check, track_a=track_a, track_b=track_b, layout=layout)))
        return
    if answers is not None and scorer != "cosine":
        raise OptionError("answers_and_scorer")
    has_model = encoder.get("model") is not None
    if encodes and not has_model:
        raise OptionError("submission_needs_model")
    system = opening.system(encoder=encoder, scorer=scorer, meanmax=meanmax) if has_model else None
    submission = narrlit.submit(
        system,
        track_a=track_a,
        track_b=track_b,
        answers=answers,
        layout=layout,
        out=out or DEFAULT,
        progress=True,
    )
    say(str(submission))
