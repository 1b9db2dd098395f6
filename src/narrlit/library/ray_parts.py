"""Embedding of parts with Ray Data: one task reads them, workers embed them; Ray passes a lost worker's part on."""

import logging
import os
import pickle
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

from narrlit.errors import mistake_behind
from narrlit.library.part_source import EmbeddedPart, MissingParts, PartSource
from narrlit.optional import require


def by_ray(missing: MissingParts, workers: int) -> Iterator[EmbeddedPart]:
    """Embed the missing parts with Ray Data, and yield all parts as they are finished.

    Ray's own writers are not used, because they can't resume after an interruption.

    Args:
        missing: the parts.
        workers: number of workers; each loads the model once.
    """
    os.environ.update(RAY_USAGE_STATS_ENABLED="0", RAY_BACKEND_LOG_LEVEL="fatal")
    ray, data = require("ray", "ray"), require("ray.data", "ray")
    with warnings.catch_warnings(action="ignore"):  # LanceDB warns of forks; those of Ray start other programs at once
        ray.init(include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    logging.getLogger("ray.data").setLevel("ERROR")
    context = data.DataContext.get_current()
    context.enable_progress_bars, context.target_max_block_size = False, 1  # a part is a block, however small
    resources = _resources_of_worker(ray.cluster_resources(), workers)
    sent = missing.for_worker()

    def parts(_: Any) -> Iterator[dict[str, object]]:
        """Read the missing parts."""
        for part in sent:
            yield {"part": [pickle.dumps(part)]}

    try:
        pool = {"compute": data.ActorPoolStrategy(size=workers), "fn_constructor_args": (sent.source,)}
        rows_of_parts = data.from_items([0]).map_batches(parts, batch_size=1, **_resources_of_reader(resources))
        done = rows_of_parts.map_batches(_Worker, batch_size=1, **pool, **resources)
        for row in done.iter_rows():
            yield pickle.loads(row["done"])  # noqa: S301  (what the worker has just written)
    except Exception as error:
        raise mistake_behind(getattr(error, "cause", error)) or error from error
    finally:
        ray.shutdown()


class _Worker:
    """Ray worker that embeds parts; it loads the model once."""

    def __init__(self, source: PartSource) -> None:
        self.source = source

    def __call__(self, batch: Mapping[str, Any]) -> dict[str, object]:
        """Embed a part, unless it is already written."""
        part = pickle.loads(batch["part"][0])  # noqa: S301  (what the reading task has just written)
        return {"done": [pickle.dumps(self.source.embed(part))]}


def _resources_of_worker(cluster: Mapping[str, float], workers: int) -> dict[str, float]:
    """Return the resources of a Ray worker: a GPU or, without GPUs, a share of all processors but the reading one."""
    if cluster.get("GPU", 0):
        return {"num_gpus": 1}
    processors = max((cluster.get("CPU", 0) - 1) / workers, 0.1)
    return {"num_cpus": int(processors) if processors > 1 else processors}


def _resources_of_reader(worker: Mapping[str, float]) -> dict[str, float]:
    """Return the resources of the reading task, which differ from a worker's.

    Ray would otherwise run the task and all parts in one worker.
    """
    return {"num_cpus": 0.5 if worker.get("num_cpus") == 1 else 1}
