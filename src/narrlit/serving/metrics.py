"""Metrics of a server in the format of Prometheus."""

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)


class ServerMetrics:
    """Counters and histograms of one server.

    Attributes:
        requests: number of answered requests, by method, route and status.
        seconds: time to answer requests, by route.
        texts: number of embedded texts.
        batch_texts: number of texts that the model embeds together.
    """

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self.requests = Counter(
            "narrlit_requests", "Answered requests.", ["method", "route", "status"], registry=self._registry
        )
        self.seconds = Histogram(
            "narrlit_request_seconds", "Time to answer a request.", ["route"], buckets=SECONDS, registry=self._registry
        )
        self.texts = Counter("narrlit_texts_embedded", "Texts embedded for requests.", registry=self._registry)
        self.batch_texts = Histogram(
            "narrlit_batch_texts", "Texts that the model embeds together.", buckets=SIZES, registry=self._registry
        )

    def watch(self, name: str, description: str, value: Callable[[], float]) -> None:
        """Add a value that is read whenever the metrics are."""
        Gauge(name, description, registry=self._registry).set_function(value)

    def text(self) -> bytes:
        """Return all metrics as text."""
        return generate_latest(self._registry)
