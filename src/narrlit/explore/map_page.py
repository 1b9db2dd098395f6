"""Map of stories as a file: the page with its data."""

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from narrlit.data.schema import IntArray, Story
from narrlit.data.writers import is_exact
from narrlit.errors import printable
from narrlit.explore.agreement import Agreement
from narrlit.explore.analysis_answers import NamedStory, agreement_answer, retellings_answer
from narrlit.explore.explanation_page import DIGITS, pair_answer, placed_passages
from narrlit.explore.map_answer import Metadata, map_answer
from narrlit.explore.matched_pair import Background, ComparedStory, Likeness, MatchedPair, likeness
from narrlit.explore.pairs import ROUNDING, ComparedStories
from narrlit.explore.story_map import StoryMap
from narrlit.library.collection import Collection
from narrlit.library.story_frame import metadata_columns
from narrlit.pages import page_file
from narrlit.preprocessing.words import num_characters, num_words

CHARACTERS = 5_000_000
"""Maximum number of characters of all texts in a page, which keeps it below 10 MB."""
ALL_PAIRS = 50
"""Maximum number of stories of which a page carries the links of all pairs; of more, those of near stories."""


def map_page(
    story_map: StoryMap,
    name: str,
    facts: Mapping[str, str],
    agreement: Agreement | None = None,
    pairs: Mapping[tuple[int, int], MatchedPair] | None = None,
    compared: ComparedStories | None = None,
) -> str:
    """Render the map of N stories as a page.

    Args:
        story_map: the map.
        name: name of the collection.
        facts: what the map was made from: model, measure, words read, languages, accuracy, hubs.
        agreement: agreement with a column, whose colors the page opens with.
        pairs: pairs of stories with the links that the page carries, i < j.
        compared: the stories with their similarities, of which the page shows groups of retellings; None: no groups.
    """
    frame = story_map.frame
    pairs = pairs or {}
    metadata = [_metadata(row) for row in frame[metadata_columns(frame)].to_dict("records")]
    limit = CHARACTERS // len(frame)
    is_cut = bool((frame["text"].str.len() > limit).any())
    passages_of: dict[int, list[str]] = {}
    for (i, j), pair in pairs.items():
        passages_of[i], passages_of[j] = pair.passages
    stories = _stories(story_map, metadata, passages_of, limit)
    carried_pairs = {}
    for (i, j), pair in pairs.items():
        sizes = (len(stories[i]["passages"]), len(stories[j]["passages"]))
        carried_pairs[f"{i}-{j}"] = pair_answer(pair, sizes)
    answers: dict[str, Any] = {"map": map_answer(story_map, metadata, facts).model_dump(mode="json")}
    if agreement is not None:
        answers["map"]["color"] = agreement.column
        values = [str(row.get(agreement.column, "")) for row in metadata]
        answer = agreement_answer(agreement, values, lambda row: NamedStory.model_validate(stories[row]))
        answers["agreement"] = {agreement.column: answer.model_dump(mode="json")}
    if compared is not None:
        retellings = retellings_answer(compared, None, lambda row: NamedStory.model_validate(stories[row]))
        answers["retellings"] = retellings.model_dump(mode="json")
    collection = {
        "name": name,
        "stories": len(frame),
        "model": facts["model"],
        "measure": story_map.measure,
        "columns": _columns(frame, metadata),
        "label": None,
    }
    return page_file(
        f"Map of {name}",
        {
            "view": "map",
            "ids": [],
            "collection": collection,
            "answers": answers,
            "stories": stories,
            "pairs": carried_pairs,
            "cut": limit if is_cut else None,
        },
    )


def _metadata(row: Mapping[Any, object]) -> Metadata:
    """Convert the values of a story to plain data for JSON, without those that are missing."""
    values = {str(name): _plain(value) for name, value in row.items()}
    return {name: value for name, value in values.items() if value != ""}


def _plain(value: object) -> str | int | float:
    """Convert a value of a column to plain data for JSON; a missing one is empty."""
    if value is None:
        return ""
    if isinstance(value, bool) or not isinstance(value, (int, float, np.number)):
        return printable(value, 60)
    if isinstance(value, int):
        return value if is_exact(value) else str(value)
    number = float(value)
    if not np.isfinite(number):
        return ""
    return int(number) if number.is_integer() else number


def _columns(frame: pd.DataFrame, metadata: Sequence[Metadata]) -> list[dict[str, object]]:
    """Count the values of the metadata columns, the most frequent first."""
    columns: list[dict[str, object]] = []
    for name in metadata_columns(frame):
        values = pd.Series([row[name] for row in metadata if name in row], dtype=object)
        counts = values.value_counts()
        counted = [{"value": value, "count": int(count)} for value, count in counts.items()]
        is_number = len(values) > 0 and all(isinstance(value, (int, float)) for value in values)
        kind = "number" if is_number else "text"
        columns.append({"name": name, "kind": kind, "values": counted, "distinct": len(counts)})
    return columns


def _stories(
    story_map: StoryMap, metadata: Sequence[Metadata], passages_of: Mapping[int, list[str]], limit: int
) -> list[dict[str, Any]]:
    """Collect the stories with their nearest ones, and the places of their passages within a number of characters."""
    frame = story_map.frame
    alike = _likenesses(story_map)
    stories = []
    for row, (id, title, text) in enumerate(zip(frame["id"], frame["title"], frame["text"], strict=True)):
        near = []
        for rank, other in enumerate(story_map.neighbors[row].tolist()):
            near.append((other, round(float(story_map.similarities[row, rank]), DIGITS), alike[row][rank]))
        stories.append(
            {
                "id": id,
                "title": title or story_map.labels[row],
                "text": text if len(text) <= limit else printable(text, limit),
                "words": num_words(text),
                "characters": num_characters(text),
                "metadata": metadata[row],
                "near": near,
                "passages": placed_passages(text, passages_of.get(row, []), limit),
            }
        )
    return stories


def _likenesses(story_map: StoryMap) -> list[list[Likeness | None]]:
    """Describe the similarity of each story with its nearest ones, by the ranks of both.

    In a plane, the rank of a story among the nearest ones of the other is taken for its own.
    """
    tree = story_map.arrangement.tree
    n, k = story_map.neighbors.shape
    better = np.tile(np.arange(k), (n, 1))
    from_other = better
    if tree is not None:
        others = tree.similarities[story_map.neighbors].astype(np.float64)  # (N, k, N)
        is_closer = others > story_map.similarities[:, :, None] + ROUNDING
        itself = story_map.neighbors[:, :, None] == np.arange(n)
        from_other = (is_closer & ~itself).sum(axis=2)
    words = []
    for row in range(n):
        pairs = zip(better[row].tolist(), from_other[row].tolist(), strict=True)
        words.append([likeness(closer, n - 2) for closer in pairs])
    return words


def matched_pairs(collection: Collection, neighbors: IntArray) -> dict[tuple[int, int], MatchedPair]:
    """Match the passages of N stories with those of their neighbors (N, k), or of all others if there are few stories.

    Returns:
        The pairs by the rows i < j of their stories.
    """
    n = len(collection)
    if n <= ALL_PAIRS:
        chosen = set(combinations(range(n), 2))
    else:
        chosen = {(min(i, j), max(i, j)) for i, row in enumerate(neighbors.tolist()) for j in row}
    background = Background.of_collection(collection)
    compared = []
    for id, text, passages in zip(collection.frame["id"], collection.frame["text"], collection.passages, strict=True):
        compared.append(ComparedStory.of(Story(id, text), passages, background))
    return {(i, j): MatchedPair.of(compared[i], compared[j], background) for i, j in sorted(chosen)}
