"""narrlit compare: systems on the same labeled triples, with paired tests."""

from pathlib import Path
from typing import Annotated

from narrlit.console import say
from narrlit.errors import OptionError
from narrlit.files import Output
from narrlit.metrics.meanmax import MeanMax
from narrlit.options import LabelOptions, LoadOptions, StoryOptions, SubmissionOptions, listed

FILES = ("compare.json", "compare.csv", "compare.md", "compare.tex", "compare.svg", "answers.csv")


def compare(  # noqa: PLR0913 (options)
    triples: str,
    *,
    use: LoadOptions,
    read: StoryOptions,
    given: LabelOptions,
    submitted: SubmissionOptions,
    meanmax: MeanMax,
    models: str | None = None,
    answers: str | None = None,
    baselines: str | None = None,
    by: str | None = None,
    out: Annotated[str | None, Output.folder(*FILES)] = None,
) -> None:
    """Compare systems with the first one named, on the same labeled triples.

    Embeddings are kept in runs/embeddings: a repeated comparison loads no model.

    Args:
        triples: JSON Lines or CSV of anchor_text, text_a, text_b and text_a_is_closer.
        use: how models are loaded.
        read: what they read of stories.
        given: labels of the triples.
        submitted: what vectors and submissions are of.
        meanmax: settings of Mean-Max.
        models: runs, folders, checkpoints, hub ids or minilm, with commas between; meanmax:MODEL compares sentence with
            sentence. Files, as for --answers, may be among them.
        answers: files of answers to these triples, with commas between - text_a_is_closer (.jsonl, .csv), as judge and
            predict write it, a submission (.zip), or vectors (.npy).
        baselines: random, jaccard, tfidf, longer, with commas between, or all.
        by: accuracy by quartile of overlap (of words), length or margin, or by a column of the triples' file; several
            with commas between.
        out: folder for the report (compare.json, .csv, .md, .tex, .svg) and answers.csv.
    """
    from narrlit.commands.systems import named_systems
    from narrlit.experiments.evaluation import compare as compare_systems
    from narrlit.experiments.systems import ANSWER_SUFFIXES
    from narrlit.measures import MEANMAX
    from narrlit.metrics.baselines import BASELINES

    names, files, plain = (listed(value) for value in (models, answers, baselines))
    plain = list(BASELINES) if plain == ["all"] else plain
    unknown = next((name for name in plain if name not in BASELINES), None)
    if unknown is not None:
        raise OptionError(f"--baselines {unknown}: give all alone, or some of {', '.join(BASELINES)}")
    unknown = next((name for name in files if Path(name).suffix not in ANSWER_SUFFIXES), None)
    if unknown is not None:
        raise OptionError(f"--answers {unknown}: no {', '.join(ANSWER_SUFFIXES)} file; name models by --models")
    if not [*names, *files, *plain]:
        raise OptionError("name systems: --models A,B, --answers FILE or --baselines all")
    if meanmax != MeanMax() and not any(name.startswith(MEANMAX) for name in names):
        raise OptionError(f"--reading, --gamma, --windows and --tau need --models {MEANMAX}MODEL")
    result = compare_systems(
        triples,
        named_systems([*names, *files, *plain], use, read, meanmax),
        by=listed(by),
        labels=given.labels,
        strict=given.strict,
        stories=submitted.stories,
        track=submitted.track,
        progress=True,
    )
    if out is not None:
        result.write(out)
        say(f"{out}: compare.json, .csv, .md, .tex, .svg, and answers.csv")
    print(result)
