"""`narrlit.evaluate_mteb`: run tasks of MTEB, from data on this machine, and write results that MTEB reads."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from math import nan
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from narrlit.console import say
from narrlit.encoding.story_encoder import StoryEncoder
from narrlit.errors import OptionError
from narrlit.experiments.mteb_model import MtebModel, mteb_model
from narrlit.experiments.mteb_tasks import loaded, official_task, size
from narrlit.files import atomic_path, write_text
from narrlit.models.config import DEFAULT_MODEL
from narrlit.optional import require
from narrlit.results import Estimate, Result

if TYPE_CHECKING:
    from mteb.abstasks.abstask import AbsTask
    from mteb.models.model_meta import ModelMeta
    from mteb.results import TaskResult

META = "model_meta.json"


@dataclass(frozen=True, eq=False)
class MtebEvaluation(Result):
    """Main scores of a model on tasks of MTEB, as figures with the subset `task: NAME`.

    Attributes:
        meta: metadata of the model (`mteb.ModelMeta`).
        results: all scores of each task (`mteb.TaskResult`).
    """

    meta: "ModelMeta"
    results: Sequence["TaskResult"]

    def write(self, folder: str | Path) -> None:
        """Write the files of a result (mteb.json, ...), and TASK.json and model_meta.json as MTEB writes them."""
        super().write(folder)
        for result in self.results:
            with atomic_path(Path(folder) / f"{result.task_name}.json") as temporary:
                result.to_disk(temporary)
        meta = {**self.meta.to_dict(), "loader_kwargs": {}}  # without the path of a local model
        write_text(Path(folder) / META, json.dumps(meta, default=str, indent=4))


def evaluate_mteb(
    tasks: "Sequence[str | AbsTask]",
    encoder: str | PathLike[str] | StoryEncoder | MtebModel = DEFAULT_MODEL,
    *,
    datasets: str | Path | None = None,
    download: bool = False,
    progress: bool = False,
) -> MtebEvaluation:
    """Run tasks of MTEB.

    Nothing is downloaded unless `download` is given: the data come from `datasets`, or from the cache of the package
    datasets. No result is read from or written to the cache of MTEB.

    Args:
        tasks: names of tasks for texts that MTEB contains, such as `STS17`; or tasks of MTEB, such as those of
            `triples_task` and `versions_task`.
        encoder: a model (run, folder, checkpoint, hub id, `minilm`), an encoder from `narrlit.load`, or the result of
            `mteb_model`.
        datasets: folder with a folder for each named task, called like the task, that contains its data set.
        download: download data sets that are not on this machine.
        progress: print the name of each task, and show the progress bars of MTEB, on stderr.

    Returns:
        A `Result` with the main score of each task, the mean over its splits and subsets, and n, the number of queries,
        or of rows of a task without queries; also `.results` and `.meta` of MTEB.

    Raises:
        DataError: if the data of a task can't be loaded.
        MissingExtraError: if MTEB is not installed.
        ModelError: if the model can't be loaded.
        OptionError: if MTEB has no such task, no task is given, or two have the same name.
    """
    mteb = require("mteb", "mteb")
    chosen = [official_task(task, datasets) if isinstance(task, str) else task for task in tasks]
    names = [task.metadata.name for task in chosen]
    if not names:
        raise OptionError("empty_list", option="tasks")
    for name in names:
        if names.count(name) > 1:
            raise OptionError("task_twice", task=name)
    system = encoder if isinstance(encoder, MtebModel) else mteb_model(encoder)
    meta = system.mteb_model_meta
    results, figures = [], []
    for task in chosen:
        name = task.metadata.name
        if progress:
            say(name)
        with loaded(task, download):
            # A tracker of emissions would reach the network.
            evaluated = mteb.evaluate(system, task, cache=None, co2_tracker=False, show_progress_bar=progress)
            (result,) = evaluated.task_results
            score = Estimate(float(result.get_score()), nan, nan, size(task))
        figures.append(score.row(meta.name, task.metadata.main_score, f"task: {name}"))
        results.append(result)
    settings = {"model": meta.name, "revision": meta.revision}
    return MtebEvaluation.of("mteb", figures, settings=settings, meta=meta, results=results)
