"""Two stories as a parallel edition for an HTML page: passages that are linked in order share a row."""

from dataclasses import dataclass

from narrlit.explore.explanation_text import ARROWS
from narrlit.explore.matched_pair import MatchedPair
from narrlit.measures.matching import in_order


@dataclass(frozen=True)
class PageLink:
    """A link as a page shows it.

    Attributes:
        ends: numbers of both passages, from 1.
        share: part of the score.
        strength: share over the largest one, 0 to 1.
        arrow: →, ← or ↔.
    """

    ends: tuple[int, int]
    share: float
    strength: float
    arrow: str

    @property
    def name(self) -> str:
        """Name of the link, by which the page finds its other end."""
        return f"{self.ends[0]}-{self.ends[1]}"


@dataclass(frozen=True)
class PagePassage:
    """A passage with its links out of the order.

    Attributes:
        number: from 1.
        text: of the passage.
        links: those that no row shows, the largest share first, and the text at the other end of each.
    """

    number: int
    text: str
    links: list[tuple[PageLink, int, str]]


@dataclass(frozen=True)
class PageRow:
    """Passages of both stories side by side: those of a link, or those between two links."""

    link: PageLink | None
    sides: tuple[list[PagePassage], list[PagePassage]]


def parallel_edition(pair: MatchedPair) -> list[PageRow]:
    """Arrange all passages of two stories in rows: links in the order of both stories, and what is between them."""
    links = page_links(pair)
    rows_of_links = in_order(pair.shares)
    in_rows = [(i + 1, j + 1) for i, j in rows_of_links]
    others = [link for ends, link in links.items() if ends not in in_rows]
    sides = (_side(pair, 0, others), _side(pair, 1, others))
    rows: list[PageRow] = []
    done_first, done_second = 0, 0
    for i, j in [*rows_of_links, (len(sides[0]), len(sides[1]))]:
        between = (sides[0][done_first:i], sides[1][done_second:j])
        if between != ([], []):
            rows.append(PageRow(None, between))
        if (i + 1, j + 1) in links:
            rows.append(PageRow(links[i + 1, j + 1], ([sides[0][i]], [sides[1][j]])))
        done_first, done_second = i + 1, j + 1
    return rows


def page_links(pair: MatchedPair) -> dict[tuple[int, int], PageLink]:
    """Return the links of two stories by the numbers of both passages, the largest share first."""
    links = {}
    for row in pair.links.itertuples():
        ends = (row.passage_a, row.passage_b)
        links[ends] = PageLink(ends, row.share, row.share / pair.links["share"].max(), ARROWS[row.direction])
    return links


def _side(pair: MatchedPair, side: int, links: list[PageLink]) -> list[PagePassage]:
    """Return the passages of a story with those of the links that end at each."""
    passages = []
    for number, text in enumerate(pair.passages[side], start=1):
        attached = []
        for link in links:
            if link.ends[side] == number:
                end = link.ends[1 - side]
                attached.append((link, end, pair.passages[1 - side][end - 1]))
        passages.append(PagePassage(number, text, attached))
    return passages
