"""Private names of torchmetrics, checked with 1.7 to 1.9."""

from torchmetrics import Metric


def is_synced(metric: Metric) -> bool:
    """Return True if a metric's states are the sums over all processes.

    `Metric.sync` is an error then, and no public attribute tells; a `sync_context` that may be nested would replace
    this.
    """
    return metric._is_synced
