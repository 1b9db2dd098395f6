"""narrlit evaluate: measure accuracy on labeled triples, or run tasks of MTEB."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import narrlit
from narrlit.commands.options import LabelOptions, ModelOptions, ScorerOptions, StoryOptions, listed
from narrlit.commands.systems import model_or_baseline
from narrlit.console import print_result, say
from narrlit.errors import OptionError
from narrlit.files import Output, result_files
from narrlit.measures.names import BaselineName

if TYPE_CHECKING:
    from mteb.abstasks.abstask import AbsTask

    from narrlit.encoding.story_encoder import StoryEncoder

OF_TRIPLES = ("StoryTriples", "SemEval2026Task4")
"""Tasks whose data are the file of triples; the second has the description of the shared task."""


def _files(arguments: Mapping[str, Any]) -> Iterable[str]:
    """List the files to write: those of the evaluation; for MTEB, one more for each task and one for the model."""
    if arguments["out"] is None:
        return []
    tasks = listed(arguments["mteb"])
    names = result_files("evaluate")
    if tasks:
        names = [*result_files("mteb"), *(f"{task}.json" for task in tasks), "model_meta.json"]
    return [f"{arguments['out']}/{name}" for name in names]


def evaluate(  # noqa: PLR0913 (options)
    triples: str | None = None,
    /,
    *,
    loading: ModelOptions,
    reading: StoryOptions,
    labels: LabelOptions,
    baseline: BaselineName | None = None,
    scoring: ScorerOptions,
    mteb: str | None = None,
    datasets: str | None = None,
    download: bool = False,
    json: bool = False,
    out: Annotated[str | None, Output(written=_files)] = None,
) -> None:
    """Evaluate a model or a baseline on labeled triples: accuracy, number of triples and 95 % Wilson interval.

    With --mteb, run tasks of MTEB instead: main score and number of queries or rows.

    Args:
        triples: JSON Lines or CSV of anchor_text, text_a, text_b and text_a_is_closer.
        loading: the model.
        reading: how the model reads a story: views, pseudonyms, fusion and post-processing.
        labels: labels of the triples.
        baseline: lexical baseline to evaluate instead of a model.
        scoring: measure of similarity.
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
    tasks = listed(mteb)
    if tasks:
        if baseline is not None or scoring.scorer != "cosine":
            raise OptionError("mteb_without_baseline")
        if loading.model is None:
            raise OptionError("mteb_needs_model")
        encoder = reading.load(loading.model, loading)
        _evaluate_mteb(tasks, triples, labels, encoder, datasets, download, json, out)
        return
    if triples is None:
        raise OptionError("no_triples_named")
    if datasets is not None or download:
        raise OptionError("datasets_need_mteb")
    system = model_or_baseline(loading, reading, scoring, baseline)
    result = narrlit.evaluate(triples, system, labels=labels.labels, strict=labels.strict, progress=True)
    if out is not None:
        result.write(out)
        say(f"{out}: evaluate.json, .csv, .md, .tex, .svg, and answers.csv")
    print_result(result, json)


def _evaluate_mteb(
    names: list[str],
    triples: str | None,
    labels: LabelOptions,
    encoder: "StoryEncoder",
    datasets: str | None,
    download: bool,
    json: bool,
    out: str | None,
) -> None:
    tasks = _tasks(names, triples, labels)
    result = narrlit.evaluate_mteb(tasks, encoder, datasets=datasets, download=download, progress=True)
    if out is not None:
        result.write(out)
        say(f"{out}: mteb.json, .csv, .md, {', '.join(f'{name}.json' for name in names)} and model_meta.json")
    print_result(result, json)


def _tasks(names: list[str], triples: str | None, labels: LabelOptions) -> "list[str | AbsTask]":
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
            tasks.append(narrlit.triples_task(triples, descriptions[name], labels=labels.labels, strict=labels.strict))
        else:
            tasks.append(name)
    return tasks
