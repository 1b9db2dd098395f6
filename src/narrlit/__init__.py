"""Train, evaluate and use embeddings of stories.

Two stories are similar when theme, course of action and outcome agree, not when they share names or words.

>>> import narrlit
>>> narrlit.similarity(["A knight seeks a grail.", "A diver seeks a pearl."]).shape
(2, 2)
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from narrlit import losses
    from narrlit.api import embed, similarity
    from narrlit.data.readers import read_stories, read_triples
    from narrlit.encoding.loading import load
    from narrlit.experiments.evaluation import compare, evaluate
    from narrlit.explore.explanation import explain
    from narrlit.explore.index import Index
    from narrlit.metrics.triples import TripleAccuracy
    from narrlit.submission import submit

__version__ = "0.1.0"
__all__ = [
    "Index",
    "TripleAccuracy",
    "__version__",
    "compare",
    "embed",
    "evaluate",
    "explain",
    "load",
    "losses",
    "read_stories",
    "read_triples",
    "similarity",
    "submit",
]

_MODULES = {
    "Index": "narrlit.explore.index",
    "TripleAccuracy": "narrlit.metrics.triples",
    "compare": "narrlit.experiments.evaluation",
    "embed": "narrlit.api",
    "evaluate": "narrlit.experiments.evaluation",
    "explain": "narrlit.explore.explanation",
    "load": "narrlit.encoding.loading",
    "read_stories": "narrlit.data.readers",
    "read_triples": "narrlit.data.readers",
    "similarity": "narrlit.api",
    "submit": "narrlit.submission",
}

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Import a public name on first use, so that `import narrlit` costs nothing."""
        if name == "losses":
            return import_module("narrlit.losses")
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(import_module(_MODULES[name]), name)
        globals()[name] = value
        return value

    def __dir__() -> list[str]:
        return sorted(set(globals()) | set(__all__))
