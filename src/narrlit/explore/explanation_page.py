"""Compared stories as the page reads them, in map.html and explanation.html."""

from collections.abc import Sequence
from typing import Any

from narrlit.data.schema import Story
from narrlit.explore.matched_pair import MatchedPair
from narrlit.explore.passages import place_all
from narrlit.pages import page_file

DIGITS = 4
"""Digits of similarities and shares in a page."""


def explanation_page(pairs: Sequence[MatchedPair], model: str, measure: str) -> str:
    """Render a pair of stories, or an anchor with two others, as a page.

    Args:
        pairs: the pair, or both pairs of the anchor.
        model: name of the model.
        measure: measure of the collection.
    """
    first = pairs[0]
    stories = [_story(first.stories[0], first.passages[0])]
    stories += [_story(pair.stories[1], pair.passages[1]) for pair in pairs]
    ids = [story["id"] for story in stories]
    answers = {f"0-{number}": pair_answer(pair) for number, pair in enumerate(pairs, start=1)}
    collection = {"name": "explanation", "stories": len(stories), "model": model, "measure": measure, "columns": []}
    carried = {"view": "compare", "ids": ids, "collection": collection, "answers": {}, "stories": stories}
    return page_file(" · ".join(ids), {**carried, "pairs": answers})


def _story(story: Story, passages: Sequence[str]) -> dict[str, Any]:
    """Describe a story, whose id is its title, with the places of its passages."""
    text = story.text
    fields = {"id": story.id, "title": story.id, "text": text, "words": len(text.split()), "metadata": {}, "near": []}
    return {**fields, "passages": placed_passages(text, passages)}


def placed_passages(text: str, passages: Sequence[str], limit: int | None = None) -> list[tuple[int, int] | str]:
    """Find passages in a text: their places in characters, or the passage itself where it stands in none.

    Args:
        text: text of the story.
        passages: its passages, in order.
        limit: characters of the text that the page contains; later passages are left out.
    """
    places: list[tuple[int, int] | str] = []
    for placed in place_all(text, passages):
        if limit is not None and placed.end > limit:
            break
        places.append((placed.start, placed.end) if placed.end else placed.text)
    return places


def pair_answer(pair: MatchedPair, sizes: tuple[int, int] | None = None) -> dict[str, Any]:
    """Describe two stories and their links.

    Args:
        pair: the stories.
        sizes: numbers of passages of both that the page contains; links with others are left out. None: all.
    """
    most_first, most_second = sizes or (len(pair.passages[0]), len(pair.passages[1]))
    links = []
    for link in pair.links.itertuples():
        if link.passage_a <= most_first and link.passage_b <= most_second:
            shares = (round(link.share, DIGITS), round(link.match, DIGITS))
            links.append((link.passage_a - 1, link.passage_b - 1, *shares, link.direction))
    answer: dict[str, Any] = {
        "similarity": round(pair.similarity, DIGITS),
        "score": round(pair.score, DIGITS),
        "alike": pair.likeness,
        "closer": pair.closer,
        "others": pair.background[0],
        "hubness": pair.hubness and [round(float(hub), DIGITS) for hub in pair.hubness],
        "links": links,
    }
    if pair.deletion is not None:
        answer["deletion"] = pair.deletion.frame.to_dict("records")
    if pair.views:
        answer["views"] = pair.views
    return answer
