"""Tasks of MTEB: labeled triples as reranking of two candidates, and versions of stories as retrieval."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pandas as pd

from narrlit.compat.datasets import offline
from narrlit.data.readers import Stories, read_labeled_triples, read_stories
from narrlit.data.schema import Triples
from narrlit.errors import DataError, OptionError, nearest, reading
from narrlit.library.story_frame import metadata_columns, stories_of, story_frame
from narrlit.optional import require
from narrlit.statistics.versions import Versions

if TYPE_CHECKING:
    from mteb.abstasks.abstask import AbsTask
    from mteb.abstasks.retrieval import AbsTaskRetrieval

SPLIT = "test"
SUBSET = "default"
LOCAL = "local"
"""Revision of data that come from a folder."""
TRIPLE_RANKS = (1, 2)
"""Ranks k at which the metrics of triples are computed; the largest is the number of candidates."""


@dataclass(frozen=True)
class TaskDescription:
    """Description of a task, as MTEB requires it for publication; None if unknown.

    Attributes:
        name: name of the task and of the file with its results.
        description: description in one sentence.
        languages: languages with their scripts, such as `eng-Latn`.
        reference: address of the paper or of the data.
        domains: kinds of text, such as `Fiction`, `Encyclopaedic`, `Written`.
        license: license of the data in lower case, such as `cc-by-sa-4.0`.
        annotators: origin of the labels, such as `human-annotated` or `derived`.
        creation: origin of the texts, such as `found` or `created`.
        dates: first and last day on which the texts were written, such as `("2001-01-15", "2025-06-30")`.
        citation: BibTeX entry of the paper.
    """

    name: str
    description: str
    languages: tuple[str, ...] = ("eng-Latn",)
    reference: str | None = None
    domains: tuple[str, ...] | None = None
    license: str | None = None
    annotators: str | None = None
    creation: str | None = None
    dates: tuple[str, str] | None = None
    citation: str | None = None


STORY_TRIPLES = TaskDescription(
    "StoryTriples", "Which of two stories is closer to the anchor in theme, course of action and outcome?"
)
STORY_VERSIONS = TaskDescription("StoryVersions", "Find the other versions of a story among all stories.")
SHARED_TASK = TaskDescription(
    name="SemEval2026Task4",
    description="Which of two summaries of stories is closer to the anchor in abstract theme, course of action and "
    "outcome? Labeled triples of SemEval-2026 Task 4.",
    reference="https://aclanthology.org/2026.semeval-1.429/",
    domains=("Encyclopaedic", "Fiction", "Written"),
    license="cc-by-sa-4.0",
    annotators="human-annotated",
    creation="found",
    citation="""@inproceedings{hatzel2026semeval,
  author = {Hatzel, Hans Ole and Artemova, Ekaterina and Stiemer, Haimo and Gius, Evelyn and Biemann, Chris},
  booktitle = {Proceedings of the 20th International Workshop on Semantic Evaluation},
  pages = {3460--3478},
  publisher = {Association for Computational Linguistics},
  title = {{SemEval}-2026 Task 4: Narrative Story Similarity and Narrative Representation Learning},
  url = {https://aclanthology.org/2026.semeval-1.429/},
  year = {2026},
}""",
)
"""Description of the shared task, for its own triples."""


def triples_task(
    triples: str | Path | Triples,
    description: TaskDescription = STORY_TRIPLES,
    *,
    labels: str | Path | None = None,
    strict: bool = False,
) -> "AbsTaskRetrieval":
    """Make a task of MTEB from labeled triples: the anchor is a query that ranks two documents, A and B.

    The main score is the accuracy. As in `narrlit.evaluate`, a tie counts as B.

    Args:
        triples: a file of labeled triples (JSON Lines, CSV), or triples as `read_triples` returns them.
        description: description of the task; `SHARED_TASK` for the triples of SemEval-2026 Task 4.
        labels: a file of `text_a_is_closer`, if the labels are not in the file of triples.
        strict: stop at the first invalid row instead of dropping it.

    Returns:
        A task of MTEB with its data, for `narrlit.evaluate_mteb` or `mteb.evaluate`. `push_dataset_to_hub` uploads the
        data in the format of a task that MTEB contains.

    Raises:
        DataError: if the triples can't be read.
        MissingExtraError: if MTEB is not installed.
        OptionError: if a triple has no label, or MTEB refuses the description.
    """
    require("mteb", "mteb")
    labeled = read_labeled_triples(triples, labels, strict=strict)
    queries: list[dict[str, str]] = []
    corpus: list[dict[str, str]] = []
    relevance: dict[str, dict[str, int]] = {}
    candidates: dict[str, list[str]] = {}
    for number, (triple, texts) in enumerate(zip(labeled, labeled.texts(), strict=True)):
        anchor, a, b = texts
        query = str(number)
        # MTEB ranks the later id first where scores are equal: B.
        id_a, id_b = f"{query}-a", f"{query}-b"
        queries.append(_document(query, anchor))
        corpus += [_document(id_a, a), _document(id_b, b)]
        relevance[query] = {id_a: int(bool(triple.a_is_closer)), id_b: int(not triple.a_is_closer)}
        candidates[query] = [id_a, id_b]
    task = _task(description, "Reranking", "accuracy", {"k_values": TRIPLE_RANKS})
    return _with_data(task, queries, corpus, relevance, candidates)


def versions_task(
    stories: str | Path | pd.DataFrame | Stories, same: str, description: TaskDescription = STORY_VERSIONS
) -> "AbsTaskRetrieval":
    """Make a task of MTEB from stories: each story that has other versions is a query that ranks all other stories.

    The main score is nDCG@10, as in the retrieval tasks of MTEB.

    Args:
        stories: a file or folder, a table with a column text, or the result of `read_stories`.
        same: column, such as tale type, work or author, in which versions of the same story have the same value.
        description: description of the task.

    Returns:
        A task of MTEB with its data, for `narrlit.evaluate_mteb` or `mteb.evaluate`.

    Raises:
        DataError: if the stories can't be read, or no story has another version.
        MissingExtraError: if MTEB is not installed.
        OptionError: if there is no such column, or MTEB refuses the description.
    """
    require("mteb", "mteb")
    frame = _story_frame(stories)
    ids, texts = frame["id"].tolist(), frame["text"].tolist()
    versions = _versions(frame, same)
    corpus = list(map(_document, ids, texts))
    queries: list[dict[str, str]] = []
    relevance: dict[str, dict[str, int]] = {}
    for row in versions.queries.tolist():
        queries.append(corpus[row])
        relevance[ids[row]] = {ids[other]: 1 for other in versions.partners(row).tolist()}
    task = _task(description, "Retrieval", "ndcg_at_10", {"ignore_identical_ids": True})
    return _with_data(task, queries, corpus, relevance, None)


def official_task(name: str, datasets: str | Path | None) -> "AbsTask":
    """Return a task of MTEB by its name, with the path of its data.

    Args:
        name: name of the task, such as `STS17`.
        datasets: folder with a folder NAME, which contains the files of the task's data set; None: data of the hub.

    Raises:
        DataError: if the folder has no folder NAME.
        OptionError: if there is no such task, it needs more than texts, or its data set comes with code.
    """
    mteb = require("mteb", "mteb")
    try:
        task: AbsTask = mteb.get_task(name)
    except KeyError:
        names = [task.metadata.name for task in mteb.get_tasks(exclude_superseded=False)]
        raise OptionError("unknown_task", task=name, near=nearest(name, names)) from None
    if task.metadata.modalities != ["text"]:
        raise OptionError("task_of_modalities", task=name, modalities=task.metadata.modalities)
    if task.metadata.dataset.get("trust_remote_code", False):
        raise OptionError("task_with_code", task=name)
    if task.is_aggregate:
        raise OptionError("task_of_tasks", task=name)
    if datasets is not None:
        folder = Path(datasets, name)
        if not folder.is_dir():
            raise DataError("no_folder_of_task", folder=folder, source=_source(task))
        local = {**task.metadata.dataset, "path": str(folder), "revision": LOCAL}
        task.metadata = task.metadata.model_copy(update={"dataset": local})
    return task


@contextmanager
def loaded(task: "AbsTask", download: bool) -> Iterator[None]:
    """Keep the data of a task in memory during the block.

    Args:
        task: task of MTEB.
        download: download the data if they are not on this machine.

    Raises:
        DataError: if the data can't be loaded.
    """
    if task.data_loaded:
        yield
        return
    if download:
        with reading("broken_data_of_task", _source(task), task=task.metadata.name):
            task.load_data()
    else:
        with reading("missing_data_of_task", _source(task), task=task.metadata.name), offline():
            task.load_data()
    try:
        yield
    finally:
        task.unload_data()


def size(task: "AbsTask") -> int:
    """Count the queries of a loaded task, or its rows if it has no queries, over all its splits and subsets."""
    data: Any = task.dataset
    total = 0
    for subset in task.hf_subsets:
        splits = data.get(subset, data)
        for split in task.eval_splits:
            total += _rows(splits[split])
    return total


def _rows(data: Any) -> int:
    """Count the queries or rows of one split."""
    if isinstance(data, dict):
        return len(data["queries"])
    if len(data) == 1:  # older data sets of pairs keep each column as a list in a single row
        values = next(iter(data[0].values()))
        return len(values) if isinstance(values, list) else 1
    return len(data)


def _source(task: "AbsTask") -> str:
    """Return the path of a task's data set: a name on the hub, or a folder."""
    return str(task.metadata.dataset["path"])


def _document(id: str, text: str) -> dict[str, str]:
    return {"id": id, "title": "", "text": text}


def _story_frame(stories: str | Path | pd.DataFrame | Stories) -> pd.DataFrame:
    """Tabulate stories: id, title, text, and their other columns."""
    if isinstance(stories, str | Path):
        return story_frame(read_stories(stories))
    return story_frame(stories if isinstance(stories, Stories) else stories_of(stories))


def _versions(frame: pd.DataFrame, same: str) -> Versions:
    """Find the versions among stories by a column."""
    columns = metadata_columns(frame)
    if same not in columns:
        raise OptionError(
            "unknown_column",
            option="same",
            column=same,
            source="the table of stories",
            near=nearest(same, columns),
            known=columns or "none",
        )
    values = [None if value is None else str(value) for value in frame[same]]
    versions = Versions(values)
    if not len(versions.queries):
        raise DataError("no_same_value", option="same", column=same)
    return versions


def _task(
    description: TaskDescription,
    kind: Literal["Reranking", "Retrieval"],
    main_score: str,
    attributes: Mapping[str, object],
) -> "AbsTaskRetrieval":
    """Create a task of MTEB without data; metadata and other attributes are those of its class, as MTEB expects."""
    base = require("mteb.abstasks.retrieval", "mteb").AbsTaskRetrieval
    metadata_class = require("mteb.abstasks.task_metadata", "mteb").TaskMetadata
    with reading("broken_description_of_task", description.name, error=OptionError):
        metadata = metadata_class(
            name=description.name,
            description=description.description,
            dataset={"path": description.name, "revision": LOCAL},
            type=kind,
            category="t2t",
            eval_splits=[SPLIT],
            eval_langs=list(description.languages),
            main_score=main_score,
            reference=description.reference,
            date=description.dates,
            domains=None if description.domains is None else list(description.domains),
            task_subtypes=[],
            license=description.license,
            annotations_creators=description.annotators,
            dialect=[],
            sample_creation=description.creation,
            bibtex_citation=description.citation,
        )
    task: AbsTaskRetrieval = type(description.name, (base,), {"metadata": metadata, **attributes})()
    return task


def _with_data(
    task: "AbsTaskRetrieval",
    queries: Sequence[dict[str, str]],
    corpus: Sequence[dict[str, str]],
    relevance: Mapping[str, Mapping[str, int]],
    candidates: Mapping[str, Sequence[str]] | None,
) -> "AbsTaskRetrieval":
    """Give a task its data: queries, documents, relevant documents, and the candidates of each query if not all."""
    dataset_class = require("datasets", "mteb").Dataset
    data = {
        "queries": dataset_class.from_list(list(queries)),
        "corpus": dataset_class.from_list(list(corpus)),
        "relevant_docs": relevance,
        "top_ranked": candidates,
    }
    task.dataset = {SUBSET: {SPLIT: data}}
    task.data_loaded = True
    return task
