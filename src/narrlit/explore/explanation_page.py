"""Parallel edition of two stories for an HTML page: passages that are linked in the order of both share a row."""

from collections.abc import Collection
from dataclasses import dataclass

from narrlit.explore.explanation_text import ARROWS
from narrlit.explore.matched_pair import MatchedPair
from narrlit.measures.matching import in_order


@dataclass(frozen=True)
class PageLink:
    """Link between a passage of each story, as a page shows it.

    Attributes:
        ends: numbers of both passages, from 1.
        texts: texts of both passages.
        share: share of the score.
        strength: share divided by the largest share, 0 to 1.
        arrow: →, ← or ↔.
    """

    ends: tuple[int, int]
    texts: tuple[str, str]
    share: float
    strength: float
    arrow: str

    @property
    def name(self) -> str:
        """Name of the link, by which the page finds both of its passages."""
        return f"{self.ends[0]}-{self.ends[1]}"


@dataclass(frozen=True)
class PagePassage:
    """Passage with its links that have no row of their own.

    Attributes:
        number: number of the passage, from 1.
        text: text of the passage.
        links: the links, largest share first.
    """

    number: int
    text: str
    links: list[PageLink]


@dataclass(frozen=True)
class PageRow:
    """Passages of both stories side by side: the two of a link, or those between two links."""

    link: PageLink | None
    sides: tuple[list[PagePassage], list[PagePassage]]


def parallel_edition(pair: MatchedPair) -> list[PageRow]:
    """Arrange all passages of two stories in rows: links in the order of both stories, and passages between them."""
    other_links = page_links(pair)
    row_links = [other_links.pop((i + 1, j + 1)) for i, j in in_order(pair.shares)]
    first, second = _passages(pair, 0, other_links.values()), _passages(pair, 1, other_links.values())
    rows: list[PageRow] = []
    start_first, start_second = 0, 0
    for link in row_links:
        end_first, end_second = link.ends
        passage, match = first[end_first - 1], second[end_second - 1]
        rows.append(PageRow(None, (first[start_first : end_first - 1], second[start_second : end_second - 1])))
        rows.append(PageRow(link, ([passage], [match])))
        start_first, start_second = link.ends
    rows.append(PageRow(None, (first[start_first:], second[start_second:])))
    return [row for row in rows if any(row.sides)]


def page_links(pair: MatchedPair) -> dict[tuple[int, int], PageLink]:
    """Return the links of two stories by the numbers of both passages, largest share first."""
    largest = pair.links["share"].max()
    links = {}
    for row in pair.links.itertuples():
        ends = (row.passage_a, row.passage_b)
        links[ends] = PageLink(
            ends=ends,
            texts=(row.text_a, row.text_b),
            share=row.share,
            strength=row.share / largest,
            arrow=ARROWS[row.direction],
        )
    return links


def _passages(pair: MatchedPair, side: int, links: Collection[PageLink]) -> list[PagePassage]:
    """Return the passages of the first (0) or second story (1), with the links that end at each."""
    passages = []
    for number, text in enumerate(pair.passages[side], start=1):
        own_links = [link for link in links if link.ends[side] == number]
        passages.append(PagePassage(number, text, own_links))
    return passages
