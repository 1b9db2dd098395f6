"""Searches and explanations of a collection, as its routes answer them."""

import time
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from narrlit.data.schema import Story
from narrlit.errors import printable
from narrlit.explore.alignment import write_alignment
from narrlit.explore.explanation import explain
from narrlit.explore.passages import context, place, place_all
from narrlit.preprocessing.words import num_characters
from narrlit.serving.collection_models import (
    ComparedSide,
    Copy,
    ExplainAnswer,
    ExplainBody,
    ExplainedLink,
    ExplainedSide,
    Hit,
    NearStory,
    SearchAnswer,
    SearchBody,
    Standing,
    StoryAnswer,
)
from narrlit.serving.files import content_of
from narrlit.serving.shelf import ServedCollection, Snapshot, similar_rows
from narrlit.serving.standing import standings

NEAR_COPY = 0.95
"""Cosine from which a story counts as a near-copy of another one."""
NEAREST = 10
TITLE = 60
"""Characters of a text that stand for its title."""


def search_collection(collection: ServedCollection, body: SearchBody) -> SearchAnswer:
    """Find the stories of a collection that are most similar to a text or to one of them."""
    began = time.perf_counter()
    with collection.lock:
        snapshot = collection.snapshot()
        where = collection.condition(body.filters)
        num_results = body.k
        ranked = len(snapshot) if not body.filters else len(snapshot.rows_with(body.filters))
        while True:
            table = _results(collection, snapshot, body, num_results, where)
            hits = _hits(snapshot, table, body, ranked)
            if len(hits) >= body.k or len(table) < num_results:
                break
            num_results *= 2  # near-copies left fewer hits
    measure = body.measure or snapshot.stories.measure
    return SearchAnswer(hits=hits[: body.k], measure=measure, seconds=time.perf_counter() - began)


def read(collection: ServedCollection, id: str) -> StoryAnswer:
    """Return a story in full, with the stories that are most similar to it."""
    with collection.lock:
        snapshot = collection.snapshot()
        row = snapshot.row_of(id)
        nearest = collection.index.like(id, NEAREST).frame
        ranks = standings(snapshot, nearest, row, len(snapshot) - 1, None)
    near = []
    for story, standing in zip(nearest.itertuples(), ranks, strict=True):
        near_row = snapshot.row_of(story.id)
        near.append(
            NearStory(
                id=story.id,
                title=snapshot.title(near_row),
                similarity=story.similarity,
                standing=standing,
                snippet=story.snippet,
                metadata=snapshot.metadata(near_row),
            )
        )
    return StoryAnswer(
        id=id,
        title=snapshot.title(row),
        text=snapshot.text(row),
        words=snapshot.words[row],
        characters=num_characters(snapshot.text(row)),
        metadata=snapshot.metadata(row),
        nearest=near,
    )


def explain_pair(collection: ServedCollection, body: ExplainBody) -> ExplainAnswer:
    """Explain the similarity of two stories by the links between their passages."""
    with collection.lock:
        snapshot = collection.snapshot()
        left, right = _side(snapshot, body.left), _side(snapshot, body.right)
        pair = explain(left, right, stories=snapshot.stories).pair
    links = []
    for link in pair.links.itertuples():
        links.append(
            ExplainedLink(
                left=link.passage_a - 1,
                right=link.passage_b - 1,
                similarity=link.match,
                share=link.share,
                direction=link.direction,
            )
        )
    sides = []
    for side, story, passages in zip((body.left, body.right), (left, right), pair.passages, strict=True):
        metadata = {} if side.id is None else snapshot.metadata(snapshot.row_of(side.id))
        placed = list(place_all(story.text, passages))
        sides.append(ExplainedSide(title=story.id, metadata=metadata, passages=placed))
    return ExplainAnswer(
        similarity=pair.similarity,
        score=pair.score,
        hubness=pair.hubness,
        alike=pair.likeness,
        closer=pair.closer,
        others=pair.background[0],
        left=sides[0],
        right=sides[1],
        links=links,
    )


def align_pair(collection: ServedCollection, body: ExplainBody) -> bytes:
    """Write the links between the passages of two stories of the collection as TEI."""
    with collection.lock:
        snapshot = collection.snapshot()
        rows = [snapshot.row_of(str(side.id)) for side in (body.left, body.right)]
        left, right = _side(snapshot, body.left), _side(snapshot, body.right)
        explanation = explain(left, right, stories=snapshot.stories)
        described = snapshot.collection.frame.iloc[rows]

    def write(path: Path) -> None:
        write_alignment(path, explanation.pair, explanation.model, described)

    return content_of(write, "xml")


def _results(
    collection: ServedCollection, snapshot: Snapshot, body: SearchBody, k: int, where: str | None
) -> pd.DataFrame:
    """Search the index."""
    if body.query is not None:
        return collection.index.search(body.query, k, where=where, measure=body.measure).frame
    id = str(body.like)
    snapshot.row_of(id)
    return collection.index.like(id, k, where=where, measure=body.measure).frame


def _hits(snapshot: Snapshot, table: pd.DataFrame, body: SearchBody, ranked: int) -> list[Hit]:
    """Turn results into hits; a near-copy of a better hit is listed with it instead."""
    hits: list[Hit] = []
    rows: list[int] = []
    compared = None if body.like is None else snapshot.row_of(body.like)
    ranks = standings(snapshot, table, compared, ranked, body.measure)
    for result, standing in zip(table.itertuples(), ranks, strict=True):
        row = snapshot.row_of(result.id)
        original = _original(snapshot, row, hits, rows) if body.fold_copies else None
        if original is not None:
            original.copies.append(Copy(id=result.id, title=snapshot.title(row), metadata=snapshot.metadata(row)))
        else:
            hits.append(_hit(snapshot, row, result.similarity, standing, result.snippet))
            rows.append(row)
    return hits


def _original(snapshot: Snapshot, row: int, hits: Sequence[Hit], rows: Sequence[int]) -> Hit | None:
    """Return the first hit, in one of these rows, of which a story is a near-copy."""
    cosines = similar_rows(snapshot, row, rows)
    for hit, cosine in zip(hits, cosines, strict=True):
        if cosine >= NEAR_COPY:
            return hit
    return None


def _hit(snapshot: Snapshot, row: int, similarity: float, standing: Standing, snippet: str) -> Hit:
    text = snapshot.text(row)
    passage = place(text, snippet)
    before, after = context(text, passage)
    return Hit(
        id=str(snapshot.cell(row, "id")),
        title=snapshot.title(row),
        similarity=similarity,
        standing=standing,
        passage=passage,
        before=before,
        after=after,
        copies=[],
        metadata=snapshot.metadata(row),
    )


def _side(snapshot: Snapshot, side: ComparedSide) -> Story:
    """Return a story of a comparison; its id is the title that is shown."""
    if side.text is not None:
        return Story(printable(side.text, TITLE), side.text)
    row = snapshot.row_of(str(side.id))
    return Story(snapshot.title(row), snapshot.text(row))
