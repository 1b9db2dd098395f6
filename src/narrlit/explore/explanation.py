"""Reasons for the similarity of stories: passages that answer one another, and sentences that the cosine rests on.

All numbers are cosines of a model's vectors. They describe the model, and claim no cause outside it.
"""

import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from narrlit.console import counted, say
from narrlit.data.schema import ASPECTS, Story, StoryTable
from narrlit.data.tales import sample_tales
from narrlit.data.views import StoryViews, ViewFiles
from narrlit.encoding.loading import load
from narrlit.encoding.story_encoder import StoryEncoder, unit_vectors
from narrlit.errors import DataError, MissingExtraError, ModelError, printable
from narrlit.files import atomic_path
from narrlit.models.config import Role
from narrlit.pages import render_page
from narrlit.preprocessing.pseudonyms import PseudonymOptions, pseudonymize_texts
from narrlit.preprocessing.sentences import split_sentences

if TYPE_CHECKING:
    import pandas as pd


Floats: TypeAlias = NDArray[np.floating[Any]]
Passage = tuple[int, int, float]
"""Sentence of A, sentence of B, strength."""
Table = list[dict[str, Any]]

QUANTILE, SHUFFLES = 0.95, 999
"""Quantile of answers in unrelated stories that counts as chance; number of random orders to compare with."""
MOST_PASSAGES, FEWEST_BACKGROUND, MOST_BACKGROUND = 60, 10, 100
"""Passages that a long story is divided into; background stories, fewer of which give no level of chance."""
ALIKE = ((0.05, "much alike"), (0.25, "rather alike"), (0.5, "a little alike"), (1, "not alike"))
"""Words for the share of background stories that are more similar to a story than the other one is."""
STRONGEST, WIDTH = 3, 100
"""Sentences of a story that the terminal lists; columns of the terminal."""
NUMBERS = (
    "Cosines describe how this model sees the texts; they claim no cause. A link stands where the cosine of two "
    "sentences exceeds what 95 % of answers in the background reach. A drop is what the cosine of the stories loses "
    "without a sentence."
)


# Alignment -----------------------------------------------------------------------------------------------------------


def aligned_passages(vectors_a: Floats, vectors_b: Floats, chance: float | Floats) -> list[Passage]:
    """Link sentences of two stories in order, so that the sum of the links' strengths is greatest.

    Links never cross, and no sentence has two.

    Args:
        vectors_a: (S, D) unit vectors of A's sentences.
        vectors_b: (T, D) of B's.
        chance: cosine that a link has to exceed, of all pairs or (S, T), such as `chance_levels`.

    Returns:
        Links (i, j, strength) in order; strength is the cosine minus chance, above 0.

    >>> aligned_passages(np.eye(3), np.eye(3)[1:], 0.5)
    [(1, 0, 0.5), (2, 1, 0.5)]
    """
    gains = np.maximum(vectors_a @ vectors_b.T - chance, 0)
    best = _best_sums(gains)
    links, i, j = list[Passage](), len(vectors_a), len(vectors_b)
    while i and j:
        if best[i, j] == best[i - 1, j]:
            i -= 1
        elif best[i, j] == best[i, j - 1]:
            j -= 1
        else:
            i, j = i - 1, j - 1
            links.append((i, j, float(gains[i, j])))
    return links[::-1]


def free_passages(vectors_a: Floats, vectors_b: Floats, chance: float | Floats) -> list[Passage]:
    """Link sentences as `aligned_passages` does, but in any order.

    >>> free_passages(np.eye(2), np.eye(2)[::-1], 0.5)
    [(0, 1, 0.5), (1, 0, 0.5)]
    """
    from scipy.optimize import linear_sum_assignment

    gains = np.maximum(vectors_a @ vectors_b.T - chance, 0)
    pairs = zip(*linear_sum_assignment(gains, maximize=True), strict=True)
    return [(int(i), int(j), float(gains[i, j])) for i, j in pairs if gains[i, j] > 0]


def chance_levels(vectors_a: Floats, vectors_b: Floats, background: Floats, quantile: float = QUANTILE) -> Floats:
    """Compute the cosines that sentences seldom exceed in unrelated stories of the other story's length.

    Args:
        vectors_a: (S, D) unit vectors of A's sentences.
        vectors_b: (T, D) of B's.
        background: (N, D) of the sentences of other stories, one behind the other.
        quantile: share of stories whose best answer to a sentence stays below.

    Returns:
        (S, T) levels, each the mean of both sentences' own: the quantile of the best cosines in any T (for B's
        sentences S) consecutive sentences of the background. A sentence that resembles many has a high level.
    """
    from numpy.lib.stride_tricks import sliding_window_view

    levels = []
    for vectors, length in ((vectors_a, len(vectors_b)), (vectors_b, len(vectors_a))):
        best = sliding_window_view(vectors @ background.T, min(length, len(background)), axis=1).max(axis=-1)
        levels.append(np.quantile(best, quantile, axis=1))
    means: Floats = (levels[0][:, None] + levels[1][None]) / 2
    return means


def order_kept(vectors_a: Floats, vectors_b: Floats, chance: float | Floats) -> tuple[float, float]:
    """Compare links in order with links in any order.

    Returns:
        The sum of strengths in order over that in any order, 0 to 1 (NaN without links), and the share of random
        orders of B's sentences that reach it.
    """
    gains = np.maximum(vectors_a @ vectors_b.T - chance, 0)
    free = sum(strength for *_, strength in free_passages(vectors_a, vectors_b, chance))
    if free == 0:
        return float("nan"), 1.0
    orders = np.random.default_rng(0).permuted(np.tile(np.arange(len(vectors_b)), (SHUFFLES, 1)), axis=1)
    shuffled = _best_sums(gains[:, orders].swapaxes(0, 1))[:, -1, -1]
    total = _best_sums(gains)[-1, -1]
    return float(total / free), float((1 + (shuffled >= total - 1e-9).sum()) / (1 + SHUFFLES))


def _best_sums(gains: Floats) -> Floats:
    """Compute the best sums (..., S + 1, T + 1) of links in order among the first sentences, from gains (..., S, T)."""
    *outer, s, t = gains.shape
    best = np.zeros((*outer, s + 1, t + 1))
    for i in range(s):
        linked = np.maximum(best[..., i, 1:], best[..., i, :-1] + gains[..., i, :])
        best[..., i + 1, 1:] = np.maximum.accumulate(linked, axis=-1)
    return best


# Explanations --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Explanation:
    """Why a model finds two stories similar; of a triple, the anchor and A, with `other` for the anchor and B.

    Sentences are numbered from 1.

    Attributes:
        stories: the two, by whose ids they are named.
        sentences: of each; of long stories passages.
        model: its name.
        similarity: cosine of the stories, -1 to 1.
        links: sentence_a, sentence_b, cosine, above_chance, in_order, text_a, text_b; from strong to weak.
        order: `order_kept`.
        contributions: story, sentence, drop (of the cosine without the sentence), text; from strong to weak.
        background: stories on which chance was measured.
        closer: number of background stories with a higher cosine to the first, and to the second, than the two have.
        names: effect of names on the cosine, in one sentence.
        coverage: how stories longer than the model's limit were read; empty without such.
        other: of a triple, the anchor and B.
    """

    stories: tuple[Story, Story]
    sentences: tuple[list[str], list[str]]
    model: str
    similarity: float
    links: "pd.DataFrame"
    order: tuple[float, float]
    contributions: "pd.DataFrame"
    background: str
    closer: tuple[int, int]
    names: str
    coverage: str = ""
    other: "Explanation | None" = None

    @property
    def margin(self) -> float:
        """Cosine of the anchor with A minus that with B; NaN without a third story."""
        return float("nan") if self.other is None else self.similarity - self.other.similarity

    @property
    def margins(self) -> "pd.DataFrame":
        """The anchor's sentences by what the margin loses without them, with the passages that answer in A and B.

        Columns: sentence, drop, text, and for A and B answer_a, cosine_a, text_a (NaN and "" without a link).
        """
        import pandas as pd

        if self.other is None:
            raise DataError("margins need a third story: explain(anchor, a, b)")
        numbers = pd.RangeIndex(1, len(self.sentences[0]) + 1, name="sentence")
        table = pd.DataFrame({"drop": 0.0, "text": self.sentences[0]}, index=numbers)
        for letter, sign, pair in (("a", 1, self), ("b", -1, self.other)):
            drops = pair.contributions[pair.contributions.story == self.stories[0].id].set_index("sentence")["drop"]
            table["drop"] += sign * drops.reindex(numbers, fill_value=0)
            answers = pair.links.set_index("sentence_a")[["sentence_b", "cosine", "text_b"]].reindex(numbers)
            table[[f"answer_{letter}", f"cosine_{letter}", f"text_{letter}"]] = answers.fillna({"text_b": ""})
        return _sorted(table.reset_index(), "drop")

    @property
    def findings(self) -> list[str]:
        """The result in sentences, the most important first; of a triple, why A rather than B."""
        if self.other is None:
            return [*self.pair_findings, *filter(None, [self.coverage])]
        (anchor, a), b = self.stories, self.other.stories[1]
        near, far = (a, b) if self.margin >= 0 else (b, a)
        high, low = sorted((self.similarity, self.other.similarity), reverse=True)
        verdict = f"{self.model} finds {anchor.id} closer to {near.id} than to {far.id}"
        return [f"{verdict}: cosine {high:.2f} against {low:.2f}.", *filter(None, [self.coverage])]

    @property
    def pair_findings(self) -> list[str]:
        """Sentences on the similarity of the two stories, their linked passages, and the share of names."""
        (a, b), (closer_a, closer_b), (kept, p) = self.stories, self.closer, self.order
        share = (closer_a + closer_b) / (2 * int(self.background.split()[0]))
        alike = next(word for limit, word in ALIKE if share <= limit)
        are = "is" if closer_a == 1 else "are"
        compared = f"{closer_a} {are} closer to {a.id} than {b.id} is, and {closer_b} to {b.id} than {a.id} is"
        sizes = f"{len(self.sentences[0])} and {len(self.sentences[1])} sentences"
        if len(self.links) < 3:
            order = ""
        elif p <= 1 - QUANTILE:
            order = f": order kept ({kept:.2f}; {p:.1%} of random orders reach that)"
        elif kept > 0.9:
            order = f", in much the same order ({kept:.2f}), as {p:.0%} of random orders would be"
        else:
            order = f", their order no closer than chance ({kept:.2f}; {p:.0%} of random orders reach that)"
        linked = f"{counted(len(self.links), 'passage')} of {sizes} answer{'s' * (len(self.links) == 1)} one another"
        none = f"No passage answers another above chance ({sizes}): the similarity is one of the whole."
        return [
            f"{self.model} finds {a.id} and {b.id} {alike}: cosine {self.similarity:.2f}.",
            f"Of {self.background}, {compared}.",
            f"{linked} above chance{order}." if len(self.links) else none,
            self.names,
        ]

    def text(self) -> str:
        """Write the explanation for a terminal of 100 columns."""
        lines = [line for finding in self.findings for line in _wrapped(finding)]
        if self.other is not None:
            sign, rows = (1 if self.margin >= 0 else -1), self.margins
            rows = rows[sign * rows["drop"] > 0].iloc[::sign].head(STRONGEST)
            head = f"Without these sentences of {self.stories[0].id} the margin shrinks most:"
            lines += ["", *_wrapped(head if len(rows) else "No sentence shrinks the margin if it is left out.")]
            for row in rows.itertuples():
                lines += _columns((f"{-sign * row.drop:+.3f}", 7), (f"{row.sentence} {row.text}", WIDTH - 9))
        for pair in filter(None, (self, self.other)):
            heads = [] if self.other is None else ["", *(x for line in pair.pair_findings for x in _wrapped(line))]
            lines += [*heads, "", *pair._pair_text()]
        return "\n".join([*lines, "", *_wrapped(NUMBERS)])

    def _pair_text(self) -> Iterator[str]:
        a, b = (story.id for story in self.stories)
        side = (WIDTH - 14) // 2
        if len(self.links):
            yield from (*_columns((printable(a, side), side), ("", 10), (printable(b, side), side)), "─" * WIDTH)
        for link in self.links.sort_values("sentence_a").itertuples():
            bar = f"{_bar(link.above_chance)} {link.cosine:.2f}\n{'' if link.in_order else 'moved'}"
            texts = (f"{link.sentence_a} {link.text_a}", f"{link.sentence_b} {link.text_b}")
            yield from _columns((printable(texts[0], 400), side), (bar, 10), (printable(texts[1], 400), side))
            yield ""
        for story in self.stories:
            rows = self.strongest(story)
            yield from [f"{printable(story.id, 50)}: without these sentences the cosine falls most"] if rows else []
            for row in rows:
                yield from _columns(
                    (f"{-row['drop']:+.3f}", 7), (printable(f"{row['sentence']} {row['text']}", 400), WIDTH - 9)
                )
        for aspect, texts in self.views:
            yield from ("", f"{aspect.capitalize()}")
            yield from _columns((texts[0], side), ("", 10), (texts[1], side))

    @property
    def views(self) -> list[tuple[str, tuple[str, str]]]:
        """Texts of theme, action and outcome side by side, where both stories have views."""
        first, second = (story.views for story in self.stories)
        if first is None or second is None:
            return []
        return list(zip(ASPECTS, zip(first.texts, second.texts, strict=True), strict=True))

    def strongest(self, story: Story) -> Table:
        """The rows of `contributions` of a story's sentences without which the cosine falls most."""
        rows = self.contributions[self.contributions.story == story.id].head(STRONGEST).to_dict("records")
        return [row for row in rows if row["drop"] > 0]

    def synopsis(self) -> Table:
        """Arrange the sentences as a parallel edition: passages linked in order share a row."""
        largest = max(self.contributions["drop"].abs().max() if len(self.contributions) else 0, 1e-9)
        cells: list[Table] = []
        for place, (letter, opposite) in enumerate((("a", "b"), ("b", "a"))):
            table = self.contributions[self.contributions.story == self.stories[place].id]
            drops = dict(zip(table.sentence, table["drop"], strict=True))
            moved = {row[f"sentence_{letter}"]: row for row in self.links[~self.links.in_order].to_dict("records")}
            own = list[dict[str, Any]]()
            for number, text in enumerate(self.sentences[place], start=1):
                drop, link = drops.get(number, 0.0), moved.get(number)
                cell = {"number": number, "text": text, "drop": drop, "share": drop / largest}
                if link is not None:
                    cell["moved"] = {"to": link[f"sentence_{opposite}"], "text": link[f"text_{opposite}"], **link}
                own.append(cell)
            cells.append(own)
        rows, done = Table(), [0, 0]
        ordered = self.links[self.links.in_order].sort_values("sentence_a").to_dict("records")
        for link in [*ordered, None]:
            ends = [len(own) for own in cells] if link is None else [link["sentence_a"] - 1, link["sentence_b"] - 1]
            if ends != done:
                rows.append({"link": None, "sides": [own[x:y] for own, x, y in zip(cells, done, ends, strict=True)]})
            if link is not None:
                rows.append({"link": link, "sides": [[own[end]] for own, end in zip(cells, ends, strict=True)]})
                done = [end + 1 for end in ends]
        return rows

    def table(self) -> "pd.DataFrame":
        """Tabulate the links: sentence_a, sentence_b, cosine, above_chance, in_order, text_a, text_b."""
        return self.links.copy()

    def write(self, path: str | Path) -> None:
        """Write the explanation as an HTML file that loads nothing from the network."""
        with atomic_path(path) as temporary:
            temporary.write_text(self.html(), encoding="utf-8")

    def html(self) -> str:
        """Build the explanation as an HTML file that loads nothing from the network."""
        return self._render("explanation_page.html")

    def _render(self, template: str) -> str:
        ids = [self.stories[0].id, *(pair.stories[1].id for pair in filter(None, (self, self.other)))]
        pairs = [pair for pair in (self, self.other) if pair is not None]
        path = Path(__file__).with_name(template)
        return render_page(path, [], title=" · ".join(ids), explanation=self, pairs=pairs, numbers=NUMBERS)

    def _repr_html_(self) -> str:
        return self._render("explanation.html")

    def __str__(self) -> str:
        return self.text()


@dataclass(frozen=True, eq=False)
class _Reading:
    """A story as the encoder reads it: unit vectors of the whole, its S sentences, and itself without each."""

    story: Story
    sentences: list[str]
    whole: Floats  # (D,)
    vectors: Floats  # (S, D)
    base: Floats  # (D,) sentences joined, as they are left out of
    without: Floats  # (S, D), or none of a story of one sentence
    unnamed: Floats | None  # (D,) with placeholders for names
    names: frozenset[str]


def explain(
    a: str | Story,
    b: str | Story,
    other: str | Story | None = None,
    *,
    model: str | Path | StoryEncoder = "minilm",
    background: Sequence[str] | None = None,
    views: str | Path | None = None,
    pipeline: str | None = None,
    progress: bool = False,
) -> Explanation:
    """Explain why a model finds two stories similar, or an anchor closer to one story than to another.

    Args:
        a: a text, or a story whose id names it and whose views, if any, are shown; with `other` the anchor.
        b: the story compared with it; with `other` candidate A.
        other: candidate B.
        model: a model folder, a run folder, a checkpoint, a hub id, `minilm`, or an encoder from `narrlit.load`.
        background: stories of the same kind, on which chance is measured; None, or fewer than ten: the sample tales.
        views: a file of the stories' views, or several with commas between, which are shown side by side.
        pipeline: spaCy pipeline that finds names; None: en_core_web_sm, if it is installed.
        progress: show a progress bar on stderr where it takes long.

    Returns:
        The `Explanation`: `.findings`, `.table()` of the links, `.write(path)`. It prints as a text, and a notebook
        shows its page.

    Raises:
        DataError: for a blank story, or one that lacks its views.
        ModelError: for a model that reads views, or a pipeline that is not there.

    >>> grail = "A knight seeks a grail. He asks a hermit. He dies on the way."
    >>> pearl = "A diver seeks a pearl. She drowns."
    >>> result = explain(grail, pearl)
    >>> result.contributions.iloc[0].text
    'A knight seeks a grail.'
    """
    letters = ("A", "B") if other is None else ("anchor", "A", "B")
    stories = [
        Story(letter, each) if isinstance(each, str) else each
        for letter, each in zip(letters, (a, b, other), strict=False)
        if each is not None
    ]
    if len({story.id for story in stories}) < len(stories):
        stories = [Story(f"{s.id} ({n})", s.text, s.views) for n, s in zip(letters, stories, strict=True)]
    blank = next((story.id for story in stories if not story.text.strip()), None)
    if blank is not None:
        raise DataError(f"story {blank} is blank: give a text with words")
    if views is not None:
        stories = _with_views(stories, str(views), progress)
    encoder = model if isinstance(model, StoryEncoder) else load(model)
    if encoder.facts.reads == "views":
        raise ModelError("narrlit explain leaves out sentences, but this model reads views: give the encoder inside it")
    own = {story.text for story in stories}
    others = [text for text in background or () if text not in own]
    kind = "other stories of the collection"
    if len(others) < FEWEST_BACKGROUND:
        tales, kind = sample_tales(), "sample tales"
        retold = {tale["atu"] for tale in tales if tale["text"] in own}
        others = [tale["text"] for tale in tales if tale["atu"] not in retold]
    others = [others[i] for i in np.unique(np.linspace(0, len(others) - 1, MOST_BACKGROUND).astype(int))]

    def vectors(texts: list[str]) -> Floats:
        """Embed texts as unit vectors."""
        return unit_vectors(encoder.embed(texts, progress=progress))

    roles: list[Role] = ["story"] * len(stories)
    _, coverage = encoder.read([story.text for story in stories], roles)
    readings, notes = _readings(stories, vectors, pipeline)
    pieces = vectors([sentence for text in others for sentence in split_sentences(text)])
    wholes, label = vectors(others), f"{len(others)} {kind}"
    told = coverage.summary(encoder.facts.max_length) if coverage.long else ""
    pairs = [_pair(readings[0], each, encoder.name, (wholes, pieces, label), notes, told) for each in readings[1:]]
    return pairs[0] if other is None else replace(pairs[0], other=pairs[1])


def _with_views(stories: Sequence[Story], files: str, progress: bool) -> list[Story]:
    """Attach the views of files to stories, each of which needs them."""
    table, views = StoryTable(stories), StoryViews(ViewFiles.parse(files))
    if progress:
        say(f"views: {views.summary()}")
    views.attach(table, range(len(table)), "stories")
    return table.rows


def leave_out(sentences: Sequence[str], places: Sequence[int]) -> str:
    """Join the sentences except those at `places`, counted from 0.

    >>> leave_out(["One.", "Two.", "Three."], [1])
    'One. Three.'
    """
    return " ".join(sentence for place, sentence in enumerate(sentences) if place not in places)


def split_passages(text: str) -> list[str]:
    """Split a story into its sentences, or a long one into 60 passages of whole sentences."""
    sentences = split_sentences(text) or [text]
    parts = np.array_split(np.arange(len(sentences)), min(len(sentences), MOST_PASSAGES))
    return [" ".join(sentences[i] for i in part) for part in parts]


def _readings(
    stories: Sequence[Story], vectors: Callable[[list[str]], Floats], pipeline: str | None
) -> tuple[list[_Reading], str]:
    """Embed stories whole, by sentence and with parts left out; also explain why names were not replaced."""
    unnamed: list[str | None] = [None] * len(stories)
    names, note = [frozenset[str]()] * len(stories), ""
    try:
        options = PseudonymOptions("spacy", pipeline=pipeline or PseudonymOptions.pipeline)
        done = [text for (text,) in pseudonymize_texts([[s.text] for s in stories], options, progress=False)]
        unnamed = [text.text for text in done]
        names = [frozenset(one.original for one in text.replacements) for text in done]
    except (MissingExtraError, ModelError) as error:
        if pipeline is not None:
            raise
        note = f"What names contribute is unknown: {error}."
    readings = []
    for story, changed, own in zip(stories, unnamed, names, strict=True):
        sentences = split_passages(story.text)
        left = [leave_out(sentences, [i]) for i in range(len(sentences))] if len(sentences) > 1 else []
        first = [story.text, " ".join(sentences), changed or story.text]
        found = vectors([*first, *sentences, *left])
        n = 3 + len(sentences)
        replaced = None if changed is None else found[2]
        readings.append(_Reading(story, sentences, found[0], found[3:n], found[1], found[n:], replaced, own))
    return readings, note


def _pair(
    a: _Reading, b: _Reading, model: str, background: tuple[Floats, Floats, str], note: str, coverage: str
) -> Explanation:
    """Compare two readings; the background is of whole stories (N, D), of their sentences (M, D), and its name."""
    import pandas as pd

    wholes, pieces, label = background
    similarity = float(a.whole @ b.whole)
    chance = chance_levels(a.vectors, b.vectors, pieces)
    ordered = aligned_passages(a.vectors, b.vectors, chance)
    rest = [sorted({*range(len(x))} - {link[i] for link in ordered}) for i, x in enumerate((a.vectors, b.vectors))]
    free = free_passages(a.vectors[rest[0]], b.vectors[rest[1]], chance[np.ix_(*rest)])
    moved = [(rest[0][i], rest[1][j], strength) for i, j, strength in free]
    links = [
        (i + 1, j + 1, chance[i, j] + strength, strength, in_order, a.sentences[i], b.sentences[j])
        for found, in_order in ((ordered, True), (moved, False))
        for i, j, strength in found
    ]
    columns = ["sentence_a", "sentence_b", "cosine", "above_chance", "in_order", "text_a", "text_b"]
    base = float(a.base @ b.base)
    drops = [
        {"story": one.story.id, "sentence": place, "drop": base - float(vector @ other.base), "text": sentence}
        for one, other in ((a, b), (b, a))
        for place, (sentence, vector) in enumerate(zip(one.sentences, one.without, strict=False), start=1)
    ]
    return Explanation(
        stories=(a.story, b.story),
        sentences=(a.sentences, b.sentences),
        model=model,
        similarity=similarity,
        links=_sorted(pd.DataFrame(links, columns=columns).astype({"in_order": bool}), "above_chance"),
        order=order_kept(a.vectors, b.vectors, chance),
        contributions=_sorted(pd.DataFrame(drops, columns=["story", "sentence", "drop", "text"]), "drop"),
        background=label,
        closer=tuple(int((wholes @ one.whole > similarity).sum()) for one in (a, b)),  # type: ignore[arg-type]
        names=note or _names(a, b, similarity),
        coverage=coverage,
    )


def _names(a: _Reading, b: _Reading, similarity: float) -> str:
    """Describe the cosine after the names of one story are replaced, the mean of both ways.

    With placeholders in both, unrelated stories would resemble each other by the placeholders.
    """
    if a.unnamed is None or b.unnamed is None or not (a.names or b.names):
        return "No names were found."
    without = float(a.unnamed @ b.whole + a.whole @ b.unnamed) / 2
    both = sorted(a.names & b.names)
    shared = f"in both stories {', '.join(both[:8])}" if both else "none of them in both stories"
    return (
        f"With placeholders for the names of one story the cosine is {without:.2f} in place of {similarity:.2f} "
        f"({len(a.names)} and {len(b.names)} names, {shared})."
    )


def _sorted(table: "pd.DataFrame", column: str) -> "pd.DataFrame":
    return table.sort_values(column, ascending=False, kind="stable", ignore_index=True)


def _bar(strength: float) -> str:
    """Draw a strength from 0 to 0.5 as up to four blocks."""
    eighths = max(1, min(32, round(64 * strength)))
    return "█" * (eighths // 8) + " ▏▎▍▌▋▊▉"[eighths % 8].strip()


def _wrapped(text: str, width: int = WIDTH) -> list[str]:
    """Wrap a text, without the terminal escapes in it."""
    return textwrap.wrap(printable(text, 10_000), width) or [""]


def _columns(*cells: tuple[str, int]) -> list[str]:
    """Wrap texts in columns of given widths."""
    wrapped = [[line for part in text.split("\n") for line in _wrapped(part, width)] for text, width in cells]
    widths = [width for _, width in cells]
    rows = zip_longest(*wrapped, fillvalue="")
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
