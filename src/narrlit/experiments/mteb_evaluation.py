"""`narrlit.evaluate_mteb`: run tasks of MTEB, from data on this machine, and write results that MTEB reads."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from narrlit.console import say
from narrlit.encoding.story_encoder import StoryEncoder
from narrlit.errors import OptionError
from narrlit.experiments.mteb_model import MtebModel, mteb_model
from narrlit.experiments.mteb_tasks import loaded, official_task, size
from narrlit.files import atomic_path, write_text
from narrlit.models.config import DEFAULT_MODEL
from narrlit.optional import require
from narrlit.tables import markdown_table

if TYPE_CHECKING:
    from mteb.abstasks.abstask import AbsTask
    from mteb.models.model_meta import ModelMeta
    from mteb.results import TaskResult

META = "model_meta.json"


@dataclass(frozen=True)
class MtebScore:
    """Main score of a task.

    Attributes:
        task: name of the task.
        metric: name of the main score.
        score: main score, the mean over splits and subsets.
        n: number of queries, or of rows of a task without queries.
    """

    task: str
    metric: str
    score: float
    n: int


@dataclass(frozen=True, eq=False)
class MtebEvaluation:
    """Results of a model on tasks of MTEB.

    Attributes:
        meta: metadata of the model (`mteb.ModelMeta`).
        results: all scores of each task (`mteb.TaskResult`).
        scores: main score of each task.
    """

    meta: "ModelMeta"
    results: Sequence["TaskResult"]
    scores: Sequence[MtebScore]

    @property
    def record(self) -> dict[str, object]:
        """Name and revision of the model, and the main scores, as plain data."""
        return {
            "model": self.meta.name,
            "revision": self.meta.revision,
            "tasks": [asdict(score) for score in self.scores],
        }

    def table(self) -> pd.DataFrame:
        """Tabulate the main scores: task, metric, score and n."""
        return pd.DataFrame([asdict(score) for score in self.scores])

    def write(self, folder: str | Path) -> None:
        """Write TASK.json for each task, and model_meta.json, as MTEB writes them."""
        for result in self.results:
            with atomic_path(Path(folder) / f"{result.task_name}.json") as temporary:
                result.to_disk(temporary)
        meta = {**self.meta.to_dict(), "loader_kwargs": {}}  # without the path of a local model
        write_text(Path(folder) / META, json.dumps(meta, default=str, indent=4))

    def __str__(self) -> str:
        """Format the main scores as a Markdown table."""
        rows = []
        for score in self.scores:
            rows.append({"task": score.task, "metric": score.metric, "score": f"{score.score:.3f}", "n": score.n})
        return markdown_table("", rows).rstrip("\n")


def evaluate_mteb(
    tasks: "Sequence[str | AbsTask]",
    model: str | PathLike[str] | StoryEncoder | MtebModel = DEFAULT_MODEL,
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
        model: a model (run, folder, checkpoint, hub id, `minilm`), an encoder from `narrlit.load`, or the result of
            `mteb_model`.
        datasets: folder with a folder for each named task, called like the task, that contains its data set.
        download: download data sets that are not on this machine.
        progress: print the name of each task, and show the progress bars of MTEB, on stderr.

    Returns:
        An `MtebEvaluation`: `.table()`, `.results`, `.meta`, `.write(folder)`. It is printed as a table of main scores.

    Raises:
        DataError: if the data of a task can't be loaded.
        MissingExtraError: if MTEB is not installed.
        ModelError: if the model can't be loaded.
        OptionError: if MTEB has no such task, no task is given, or two have the same name.
    """
    mteb = require("mteb", "mteb")
    chosen = [official_task(task, datasets) if isinstance(task, str) else task for task in tasks]
    _check_names([task.metadata.name for task in chosen])
    system = model if isinstance(model, MtebModel) else mteb_model(model)
    results = []
    scores = []
    for task in chosen:
        name = task.metadata.name
        if progress:
            say(name)
        with loaded(task, download):
            # A tracker of emissions would reach the network.
            evaluated = mteb.evaluate(system, task, cache=None, co2_tracker=False, show_progress_bar=progress)
            (result,) = evaluated.task_results
            scores.append(MtebScore(name, task.metadata.main_score, float(result.get_score()), size(task)))
        results.append(result)
    return MtebEvaluation(system.mteb_model_meta, results, scores)


def _check_names(names: Sequence[str]) -> None:
    """Raise OptionError without names, or for a name that is given twice."""
    if not names:
        raise OptionError("`tasks` is empty: name at least one")
    for name in names:
        if names.count(name) > 1:
            raise OptionError(f"`tasks`: {name} is given twice; give each task a name of its own")
