"""narrlit submit: write or check a submission to the shared task."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from narrlit.console import say, say_truncated
from narrlit.data.readers import Stories, read_stories, read_triples
from narrlit.data.schema import FloatArray, Triples
from narrlit.errors import OptionError, on_interrupt
from narrlit.files import Output
from narrlit.metrics.meanmax import MeanMax
from narrlit.options import InputOptions, ModelOptions, StoryOptions
from narrlit.submission import check_independence, check_submission, read_answers, write_submission

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
    scorer: Literal["cosine", "meanmax"] = "cosine",
    meanmax: MeanMax,
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
        scorer: similarity of Track A's stories, by the cosine of their embeddings, or sentence by sentence (meanmax).
        meanmax: settings of the scorer meanmax.
        out: zip to write; default: submission.zip.
        check: zip to check instead; with --track-a or --track-b also its numbers of rows.
    """
    target = out or DEFAULT
    if check is None:
        if (use.model is None) != (answers is not None and not track_b):
            raise OptionError(
                "give --model M, or --check ZIP" if use.model is None else "--answers replace the model: leave it out"
            )
        if not track_a and not track_b:
            raise OptionError("give --track-a FILE, --track-b FILE or both")
        if use.model is None and read != StoryOptions():
            raise OptionError("--views, --pseudonymize, --postprocess and their like need --model")
        if scorer != "meanmax" and meanmax != MeanMax():
            raise OptionError("--reading, --gamma, --windows and --tau need --scorer meanmax")
        if answers is not None and (not track_a or scorer == "meanmax"):
            raise OptionError("--answers need --track-a FILE, whose answers they are, and no --scorer")
    elif use != ModelOptions() or read != StoryOptions() or answers is not None or out is not None:
        raise OptionError("--check reads a zip alone: leave --model, --answers, --out and their options out")
    # A submission's rows correspond to the test file's rows: none may be dropped.
    triples = read_triples(track_a, strict=True) if track_a else None
    stories = read_stories(track_b, strict=True, layout=inputs.layout) if track_b else None
    rows = (None if triples is None else len(triples), None if stories is None else len(stories))
    if check is not None:
        contents = check_submission(Path(check), *rows)
    else:
        chosen = embeddings = None
        if answers is not None:
            chosen, _ = read_answers(Path(answers), rows[0])
            if not answers.endswith(".zip"):
                read_triples(str(track_a), labels=answers)  # refuses answers to triples with other texts
            triples = None
        with on_interrupt(f"nothing is kept; {target} is as it was"):
            if use.model is not None:
                model_answers, embeddings = _run(use, read, triples, stories, meanmax if scorer == "meanmax" else None)
                chosen = chosen or model_answers
            contents = write_submission(Path(target), chosen, embeddings, *rows)
    say(f"{check or target}: valid, {contents}")


def _run(
    use: ModelOptions, read: StoryOptions, triples: Triples | None, stories: Stories | None, meanmax: MeanMax | None
) -> tuple[list[bool] | None, FloatArray | None]:
    """Compute a model's answers to triples, and embeddings of stories, none of which may depend on another story."""
    from narrlit.metrics.meanmax import meanmax_scores
    from narrlit.models.embedding import Coverage, embed, score_triples

    # Prepared before the model is loaded: a mistake in a file of views costs no waiting.
    original = list(stories or ())
    triples = None if triples is None else read.triples(triples)
    texts = None if stories is None else read.stories(stories)
    encoder = read.encoder(use)
    answers = embeddings = None
    coverage = Coverage()
    if texts is not None:
        encoder.require_one_prompt("Track B")
        embeddings, coverage = embed(encoder, texts)
        say(check_independence(read.steps(encoder), original, embeddings, encoder.rounding_error))
    if triples is not None:
        if meanmax is None:
            scores, read_a = score_triples(encoder, triples)
            coverage += read_a
        else:
            scores = meanmax_scores(encoder, triples.texts(), meanmax).scores
        answers = [a > b for a, b in scores.tolist()]
    say_truncated(coverage, encoder.max_length, *encoder.unit)
    return answers, embeddings
