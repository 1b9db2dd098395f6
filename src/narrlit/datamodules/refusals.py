"""What data, objective and trainer can't do together, told before anything is read."""

from typing import Any

from narrlit.datamodules.loading import Loading
from narrlit.errors import OptionError


def check_read(objective: Any, joins_views: bool, unlabelled: bool) -> None:
    """See that the objective reads what the data bring.

    Args:
        objective: of the fit.
        joins_views: whether views stand behind the stories' texts.
        unlabelled: whether unlabelled stories are named, and this is a fit.

    Raises:
        OptionError: if nothing would read the one or the other.
    """
    if unlabelled and not getattr(objective, "transductive", False):
        raise OptionError(
            "data.extra.unlabelled is given, but nothing reads it: only objective Subspaces with "
            "model.transductive: true does"
        )
    if joins_views and not objective.reads_views:
        raise OptionError(
            "the data's stories are joined with views, which only objective MultiView reads: use --data FileData, or "
            "--data.views false with StoryWorldData"
        )


def check_processes(trainer: Any, loading: Loading) -> None:
    """See that several processes can share the batches.

    Raises:
        OptionError: if the trainer would replace the sampler, or an epoch has not an example for each process.
    """
    if trainer.world_size > 1 and trainer._accelerator_connector.use_distributed_sampler:
        raise OptionError("several processes need trainer.use_distributed_sampler: false (batches are shared here)")
    if loading.samples_per_epoch is not None and loading.samples_per_epoch < trainer.world_size:
        raise OptionError(
            f"loading.samples_per_epoch is {loading.samples_per_epoch}: {trainer.world_size} processes need one each"
        )
