"""narrlit compare: systems on the same labeled triples, with paired tests."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from narrlit.console import say
from narrlit.errors import OptionError
from narrlit.files import Output
from narrlit.metrics.meanmax import MeanMax
from narrlit.options import LabelOptions, LoadOptions, StoryOptions, SubmissionOptions

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
    from narrlit.experiments.systems import ANSWER_SUFFIXES, MEANMAX, answer_rows, answers_of
    from narrlit.metrics.baselines import BASELINES

    names, files, facets = (_listed(value) for value in (models, answers, by))
    plain = list(BASELINES) if baselines == "all" else _listed(baselines)
    unknown = next((name for name in plain if name not in BASELINES), None)
    if unknown is not None:
        raise OptionError(f"--baselines {unknown}: give all alone, or some of {', '.join(BASELINES)}")
    unknown = next((name for name in files if Path(name).suffix not in ANSWER_SUFFIXES), None)
    if unknown is not None:
        raise OptionError(f"--answers {unknown}: no {', '.join(ANSWER_SUFFIXES)} file; name models by --models")
    specs = [*names, *files, *plain]
    if not specs:
        raise OptionError("name systems: --models A,B, --answers FILE or --baselines all")
    twice = next((name for name in specs if specs.count(name) > 1), None)
    if twice is not None:
        raise OptionError(f"{twice} is named twice; a system is compared once")
    if meanmax != MeanMax() and not any(name.startswith(MEANMAX) for name in names):
        raise OptionError(f"--reading, --gamma, --windows and --tau need --models {MEANMAX}MODEL")
    from narrlit.data.rows import file_digest
    from narrlit.data.writers import write_table
    from narrlit.experiments.comparison import compare_systems, read_facets

    labeled = given.read(triples)
    values = read_facets(facets, triples, labeled)
    prepared = read.triples(labeled)
    systems = [
        answers_of(spec, labeled, prepared, use=use, read=read, submitted=submitted, meanmax=meanmax, triples=triples)
        for spec in specs
    ]
    plainly = asdict(StoryOptions())
    settings = {name: value for name, value in asdict(read).items() if value != plainly[name]}
    about = {"triples": {"path": triples, "sha256": file_digest(triples), "n": len(labeled)}, "reading": settings}
    report = compare_systems(systems, labeled, values, about)
    if out is not None:
        report.write(Path(out), "compare")
        write_table(Path(out) / "answers.csv", answer_rows(systems, labeled))
        say(f"{out}: compare.json, .csv, .md, .tex, .svg, and answers.csv")
    print(report.markdown(), end="")


def _listed(value: str | None) -> list[str]:
    return [] if value is None else list(filter(None, (part.strip() for part in value.split(","))))
