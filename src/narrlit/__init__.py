"""Train, evaluate and use embeddings of stories.

Two stories are similar if their theme, course of action and outcome agree, not if they share names or words.

>>> import narrlit
>>> narrlit.similarity(["A knight seeks a grail.", "A diver seeks a pearl."]).shape
(2, 2)
"""

import logging
from importlib import import_module
from typing import TYPE_CHECKING

# bitsandbytes warns in every 8-bit forward pass, and when it imports a kernel that is not used here.
logging.getLogger("bitsandbytes").setLevel(logging.ERROR)

if TYPE_CHECKING:
    from narrlit import losses, measures
    from narrlit.api import embed, similarity
    from narrlit.data.pseudonymization import pseudonymize, restore_names
    from narrlit.data.readers import read_stories, read_triples
    from narrlit.data.storyworld.writing import write_storyworld
    from narrlit.data.tales import write_tales
    from narrlit.data.twice_told import TwiceTold, write_twice_told
    from narrlit.data.views_check import check_views
    from narrlit.embedding_cache.listing import embedding_caches
    from narrlit.encoding.loading import load
    from narrlit.encoding.mining import mine
    from narrlit.experiments.ablation import ablate
    from narrlit.experiments.augmentation import back_translate_examples
    from narrlit.experiments.board import board
    from narrlit.experiments.crossval import crossval
    from narrlit.experiments.data_check import check_data
    from narrlit.experiments.evaluation import compare, evaluate
    from narrlit.experiments.fitting import fit
    from narrlit.experiments.fusion import fuse
    from narrlit.experiments.judging import judge
    from narrlit.experiments.mteb_evaluation import evaluate_mteb
    from narrlit.experiments.mteb_model import mteb_model
    from narrlit.experiments.mteb_tasks import TaskDescription, triples_task, versions_task
    from narrlit.experiments.profile import profile
    from narrlit.experiments.reproduction.reproduce import reproduce
    from narrlit.experiments.retrieval import retrieval
    from narrlit.experiments.run import Run
    from narrlit.experiments.seed_fits import fit_seeds
    from narrlit.experiments.system_report import report
    from narrlit.experiments.tuning import tune
    from narrlit.explore.catalog import catalog
    from narrlit.explore.catalog_decisions import CatalogDecisions, read_accepted
    from narrlit.explore.diversity import diversity
    from narrlit.explore.explanation import explain
    from narrlit.explore.labeled_pairs import label_pairs
    from narrlit.explore.mapping import map_stories
    from narrlit.explore.pair_checking import pairs_to_check
    from narrlit.explore.pair_decisions import PairDecisions, read_decisions
    from narrlit.explore.pairs import pairs
    from narrlit.explore.reader_agreement import reader_agreement
    from narrlit.explore.selection import select
    from narrlit.exporting.folders import average, check_export, export
    from narrlit.exporting.hub import push
    from narrlit.library.collection import Collection
    from narrlit.library.embedding_file import embed_to_file
    from narrlit.library.index import Index
    from narrlit.library.options import PartOptions, TableOptions
    from narrlit.library.parts import embed_to_folder
    from narrlit.library.search import search
    from narrlit.library.vector_table import VectorTable
    from narrlit.llm.generation import generate
    from narrlit.llm.options import GenerationOptions, LLMOptions
    from narrlit.serving.serve import serve
    from narrlit.statistics.triples import TripleAccuracy
    from narrlit.submission import check_submission, submit

__version__ = "0.1.0"
__all__ = [
    "CatalogDecisions",
    "Collection",
    "GenerationOptions",
    "Index",
    "LLMOptions",
    "PairDecisions",
    "PartOptions",
    "Run",
    "TableOptions",
    "TaskDescription",
    "TripleAccuracy",
    "TwiceTold",
    "VectorTable",
    "__version__",
    "ablate",
    "average",
    "back_translate_examples",
    "board",
    "catalog",
    "check_data",
    "check_export",
    "check_submission",
    "check_views",
    "compare",
    "crossval",
    "diversity",
    "embed",
    "embed_to_file",
    "embed_to_folder",
    "embedding_caches",
    "evaluate",
    "evaluate_mteb",
    "explain",
    "export",
    "fit",
    "fit_seeds",
    "fuse",
    "generate",
    "judge",
    "label_pairs",
    "load",
    "losses",
    "map_stories",
    "measures",
    "mine",
    "mteb_model",
    "pairs",
    "pairs_to_check",
    "profile",
    "pseudonymize",
    "push",
    "read_accepted",
    "read_decisions",
    "read_stories",
    "read_triples",
    "reader_agreement",
    "report",
    "reproduce",
    "restore_names",
    "retrieval",
    "search",
    "select",
    "serve",
    "similarity",
    "submit",
    "triples_task",
    "tune",
    "versions_task",
    "write_storyworld",
    "write_tales",
    "write_twice_told",
]

_MODULES = {
    "CatalogDecisions": "narrlit.explore.catalog_decisions",
    "Collection": "narrlit.library.collection",
    "GenerationOptions": "narrlit.llm.options",
    "Index": "narrlit.library.index",
    "LLMOptions": "narrlit.llm.options",
    "PairDecisions": "narrlit.explore.pair_decisions",
    "PartOptions": "narrlit.library.options",
    "Run": "narrlit.experiments.run",
    "TableOptions": "narrlit.library.options",
    "TaskDescription": "narrlit.experiments.mteb_tasks",
    "TripleAccuracy": "narrlit.statistics.triples",
    "TwiceTold": "narrlit.data.twice_told",
    "VectorTable": "narrlit.library.vector_table",
    "ablate": "narrlit.experiments.ablation",
    "average": "narrlit.exporting.folders",
    "back_translate_examples": "narrlit.experiments.augmentation",
    "board": "narrlit.experiments.board",
    "catalog": "narrlit.explore.catalog",
    "check_data": "narrlit.experiments.data_check",
    "check_export": "narrlit.exporting.folders",
    "check_submission": "narrlit.submission",
    "check_views": "narrlit.data.views_check",
    "compare": "narrlit.experiments.evaluation",
    "crossval": "narrlit.experiments.crossval",
    "diversity": "narrlit.explore.diversity",
    "embed": "narrlit.api",
    "embed_to_file": "narrlit.library.embedding_file",
    "embed_to_folder": "narrlit.library.parts",
    "embedding_caches": "narrlit.embedding_cache.listing",
    "evaluate": "narrlit.experiments.evaluation",
    "evaluate_mteb": "narrlit.experiments.mteb_evaluation",
    "explain": "narrlit.explore.explanation",
    "export": "narrlit.exporting.folders",
    "fit": "narrlit.experiments.fitting",
    "fit_seeds": "narrlit.experiments.seed_fits",
    "fuse": "narrlit.experiments.fusion",
    "generate": "narrlit.llm.generation",
    "judge": "narrlit.experiments.judging",
    "label_pairs": "narrlit.explore.labeled_pairs",
    "load": "narrlit.encoding.loading",
    "map_stories": "narrlit.explore.mapping",
    "mine": "narrlit.encoding.mining",
    "mteb_model": "narrlit.experiments.mteb_model",
    "pairs": "narrlit.explore.pairs",
    "pairs_to_check": "narrlit.explore.pair_checking",
    "profile": "narrlit.experiments.profile",
    "pseudonymize": "narrlit.data.pseudonymization",
    "push": "narrlit.exporting.hub",
    "read_accepted": "narrlit.explore.catalog_decisions",
    "read_decisions": "narrlit.explore.pair_decisions",
    "read_stories": "narrlit.data.readers",
    "read_triples": "narrlit.data.readers",
    "reader_agreement": "narrlit.explore.reader_agreement",
    "report": "narrlit.experiments.system_report",
    "reproduce": "narrlit.experiments.reproduction.reproduce",
    "restore_names": "narrlit.data.pseudonymization",
    "retrieval": "narrlit.experiments.retrieval",
    "search": "narrlit.library.search",
    "select": "narrlit.explore.selection",
    "serve": "narrlit.serving.serve",
    "similarity": "narrlit.api",
    "submit": "narrlit.submission",
    "triples_task": "narrlit.experiments.mteb_tasks",
    "tune": "narrlit.experiments.tuning",
    "versions_task": "narrlit.experiments.mteb_tasks",
    "write_storyworld": "narrlit.data.storyworld.writing",
    "write_tales": "narrlit.data.tales",
    "write_twice_told": "narrlit.data.twice_told",
}

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Import a public name on first use, so that `import narrlit` is fast."""
        if name in ("losses", "measures"):
            return import_module(f"narrlit.{name}")
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(import_module(_MODULES[name]), name)
        globals()[name] = value
        return value

    def __dir__() -> list[str]:
        return sorted(set(globals()) | set(__all__))
