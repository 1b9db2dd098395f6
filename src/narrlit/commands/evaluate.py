"""narrlit evaluate: measure accuracy on labeled triples, or run tasks of MTEB."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import narrlit
from narrlit.arguments import OPTIONAL, Deferred
from narrlit.commands import opening
from narrlit.console import print_result, say
from narrlit.errors import OptionError
from narrlit.files import Output, result_files
from narrlit.measures.meanmax import MeanMax
from narrlit.measures.names import BaselineName, ScorerName

if TYPE_CHECKING:
    from mteb.abstasks.abstask import AbsTask

    from narrlit.encoding.story_encoder import StoryEncoder

OF_TRIPLES = ("StoryTriples", "SemEval2026Task4")
"""Tasks whose data are the file of triples; the second has the description of the shared task."""


def _files(arguments: Mapping[str, Any]) -> Iterable[str]:
    """List the files to write: those of the evaluation; for MTEB, one more for each task and one for the model."""
    if arguments["out"] is None:
        return []
    tasks = [task.strip() for task in (arguments["mteb"] or "").split(",") if task.strip()]
    names = result_files("evaluate")
    if tasks:
        names = [*result_files("mteb"), *(f"{task}.json" for task in tasks), "model_meta.json"]
    return [f"{arguments['out']}/{name}" for name in names]


def evaluate(  # noqa: PLR0913 (options)
    triples: str | None = None,
    *,
    labels: str | None = None,
    strict: bool = False,
    encoder: "Deferred[StoryEncoder]" = OPTIONAL,
    baseline: BaselineName | None = None,
    scorer: ScorerName = "cosine",
    meanmax: MeanMax = MeanMax(),
    mteb: Sequence[str] = (),
    datasets: str | None = None,
    download: bool = False,
    json: bool = False,
    out: Annotated[str | None, Output(written=_files)] = None,
) -> None:
    """Evaluate a model or a baseline on labeled triples: accuracy, number of triples and 95 % Wilson interval.

    With --mteb, run tasks of MTEB instead: main score and number of queries or rows.

    Args:
        triples: JSON Lines or CSV of anchor_text, text_a, text_b and text_a_is_closer.
        labels: file with the labels (text_a_is_closer), if they are not in the file of triples.
        strict: stop at the first invalid triple instead of dropping and counting invalid ones.
        encoder: the model.
        baseline: lexical baseline to evaluate instead of a model.
        scorer: measure of similarity; cosine compares embeddings, meanmax compares sentences, passages compares the
            best matching passages.
        meanmax: settings of Mean-Max.
        mteb: comma-separated tasks of MTEB, such as STS17; StoryTriples is the file of triples as a task, and
            SemEval2026Task4 the same for triples of the shared task.
        datasets: where the data sets of --mteb are: a folder that contains one folder per task, named like the task;
            default: the cache of the package datasets.
        download: download data sets of --mteb that are not on this machine.
        json: print one JSON object to stdout, and nothing else.
        out: folder for the report (evaluate.json, .csv, .md, .tex, .svg) and answers.csv, which lists the scores and
            the margin of each triple; with --mteb, for mteb.json, .csv and .md, and TASK.json and model_meta.json in
            the format of MTEB.
    """
    if mteb:
        if baseline is not None or scorer != "cosine":
            raise OptionError("mteb_without_baseline")
        if encoder.get("model") is None:
            raise OptionError("mteb_needs_model")
        tasks = _tasks(mteb, triples, labels, strict)
        _evaluate_mteb(tasks, mteb, encoder.open(), datasets, download, json, out)
        return
    if triples is None:
        raise OptionError("no_triples_named")
    if datasets is not None or download:
        raise OptionError("datasets_need_mteb")
    system = opening.system(encoder=encoder, baseline=baseline, scorer=scorer, meanmax=meanmax)
    result = narrlit.evaluate(triples, system, labels=labels, strict=strict, progress=True)
    if out is not None:
        result.write(out)
        say(f"{out}: evaluate.json, .csv, .md, .tex, .svg, and answers.csv")
    print_result(result, json)


def _evaluate_mteb(
    tasks: "list[str | AbsTask]",
    names: Sequence[str],
    encoder: "StoryEncoder",
    datasets: str | None,
    download: bool,
    json: bool,
    out: str | None,
) -> None:
    result = narrlit.evaluate_mteb(tasks, encoder, datasets=datasets, download=download, progress=True)
    if out is not None:
        result.write(out)
        say(f"{out}: mteb.json, .csv, .md, {', '.join(f'{name}.json' for name in names)} and model_meta.json")
    print_result(result, json)


def _tasks(names: Sequence[str], triples: str | None, labels: str | None, strict: bool) -> "list[str | AbsTask]":
    """Return the tasks for `narrlit.evaluate_mteb`: names, and tasks made of the file of triples."""
    # Imported here, because it imports pandas: --help must be fast.
    from narrlit.experiments.mteb_tasks import SHARED_TASK, STORY_TRIPLES

    of_triples = [name for name in names if name in OF_TRIPLES]
    if triples is None and of_triples:
        raise OptionError("task_needs_triples", task=of_triples[0])
    if triples is not None and not of_triples:
        raise OptionError("no_task_of_triples", path=triples, known=list(OF_TRIPLES))
    descriptions = {description.name: description for description in (STORY_TRIPLES, SHARED_TASK)}
    tasks: list[str | AbsTask] = []
    for name in names:
        if name in descriptions and triples is not None:
            tasks.append(narrlit.triples_task(triples, descriptions[name], labels=labels, strict=strict))
        else:
            tasks.append(name)
    return tasks
