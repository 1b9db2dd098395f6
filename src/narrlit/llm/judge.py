"""Judging of triples: a language model reads three stories and their similarities, and chooses the closer candidate.

If a reply contains no choice, the similarities decide.

Source: Comhis (SemEval-2026 Task 4), section on Track A.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict

from narrlit.data.readers import LABEL_COLUMN
from narrlit.data.schema import Triples
from narrlit.llm.cache import Reply
from narrlit.llm.client import LLM
from narrlit.llm.completions import RequestFailed
from narrlit.llm.generator import Rejected, parse_reply
from narrlit.llm.requests import Request, Sampling
from narrlit.prompts import Prompt

SAMPLING = Sampling(max_tokens=64, temperature=0.0)
DIGITS = 4
"""Number of decimal places of similarities in a request."""

DISAGREEMENT = "different choice when A and B are swapped"


class Choice(BaseModel):
    """Reply of the judge."""

    model_config = ConfigDict(extra="forbid")
    closer: Literal["A", "B"]


@dataclass(frozen=True, slots=True)
class ScoredTriple:
    """Texts of a triple, and the cosines (anchor, A) and (anchor, B)."""

    texts: tuple[str, str, str]
    scores: tuple[float, float]

    @property
    def swapped(self) -> "ScoredTriple":
        """The triple with A and B swapped."""
        anchor, a, b = self.texts
        score_a, score_b = self.scores
        return ScoredTriple((anchor, b, a), (score_b, score_a))


def scored_triples(triples: Triples, scores: NDArray[np.float64]) -> list[ScoredTriple]:
    """Combine the texts of N triples with their cosines (N, 2)."""
    scored = []
    for texts, (a, b) in zip(triples.texts(), scores.tolist(), strict=True):
        scored.append(ScoredTriple(texts, (a, b)))
    return scored


@dataclass(frozen=True, slots=True)
class Answer:
    """Answer to a triple.

    Attributes:
        a_is_closer: choice between A and B as in the file; None if there is none.
        fault: reason why there is no choice.
        failed: there was no reply.
    """

    a_is_closer: bool | None
    fault: str | None = None
    failed: bool = False


@dataclass(frozen=True, slots=True)
class Judgement:
    """Judged triple: its cosines, and the answers of the language model, two if A and B were also swapped."""

    scores: tuple[float, float]
    answers: tuple[Answer, ...]

    @property
    def by_similarity(self) -> bool:
        """True if A is closer by the similarities; a tie counts as B."""
        return self.scores[0] > self.scores[1]

    @property
    def choice(self) -> bool | None:
        """Choice of the language model; None unless all answers agree."""
        choices = {answer.a_is_closer for answer in self.answers}
        return choices.pop() if len(choices) == 1 else None

    @property
    def fallback(self) -> str | None:
        """Reason why the similarities decide; None if the language model decides."""
        if self.choice is not None:
            return None
        for answer in self.answers:
            if answer.fault:
                return answer.fault
        return DISAGREEMENT

    @property
    def failed(self) -> bool:
        """True if a request got no reply."""
        return any(answer.failed for answer in self.answers)

    @property
    def a_is_closer(self) -> bool:
        """Decision of the language model or, if it made no choice, of the similarities."""
        return self.by_similarity if self.choice is None else self.choice

    def as_dict(self) -> dict[str, object]:
        """Return a row for a file, as plain data."""
        similarity_a, similarity_b = self.scores
        return {
            "similarity_a": similarity_a,
            "similarity_b": similarity_b,
            "answers": [answer.a_is_closer for answer in self.answers],
            "fallback": self.fallback,
            LABEL_COLUMN: self.a_is_closer,
        }


def judge_triples(llm: LLM, triples: Sequence[ScoredTriple], prompt: Prompt, swap: bool = False) -> list[Judgement]:
    """Judge N triples; with `swap` twice, the second time with A and B swapped: only equal choices count."""
    sampling = SAMPLING.with_options(llm.options)
    orders = (False, True) if swap else (False,)

    async def answer(triple: ScoredTriple, swapped: bool) -> Answer:
        shown = triple.swapped if swapped else triple
        request = Request(prompt, prompt.content(values(shown)), Choice, sampling, llm.options.seed)
        try:
            reply = await llm.ask(request)
            return Answer(_choice_of(reply) != swapped)
        except Rejected as rejected:
            llm.discard(request)
            return Answer(None, str(rejected))
        except RequestFailed as failure:
            return Answer(None, f"request failed: {failure.reason}", failed=True)

    async def work(triple: ScoredTriple) -> Judgement:
        answers = await asyncio.gather(*[answer(triple, swapped) for swapped in orders])
        return Judgement(triple.scores, tuple(answers))

    return llm.run(triples, work, "triple")


def values(triple: ScoredTriple) -> dict[str, object]:
    """List stories, similarities and their difference by name.

    >>> values(ScoredTriple(("x", "y", "z"), (0.71234, 0.5)))
    {'anchor': 'x', 'A': 'y', 'B': 'z', 'similarity_a': 0.7123, 'similarity_b': 0.5, 'difference': 0.2123}
    """
    anchor, a, b = triple.texts
    similarity_a, similarity_b = map(_rounded, triple.scores)
    return {
        "anchor": anchor,
        "A": a,
        "B": b,
        "similarity_a": similarity_a,
        "similarity_b": similarity_b,
        # The difference of the rounded scores, so that the three numbers are consistent.
        "difference": _rounded(similarity_a - similarity_b),
    }


def _rounded(score: float) -> float:
    """Round a score for a request."""
    return round(score, DIGITS) + 0.0  # + 0.0 converts -0.0 to 0.0


def _choice_of(reply: Reply) -> bool:
    """Return True if a complete reply chooses A, False if B; raise Rejected for any other reply."""
    if reply.finish == "length":
        raise Rejected("cut off")
    return read_choice(reply.text)


def read_choice(text: str) -> bool:
    """Return True if a reply, a single letter or JSON, chooses A, False if B; raise Rejected for any other reply.

    >>> read_choice('{"closer": "A"}'), read_choice(" B ")
    (True, False)
    """
    letter = text.strip().strip('".')
    if not letter:
        raise Rejected("empty")
    closer = letter if letter in ("A", "B") else parse_reply(text, Choice).closer
    return closer == "A"
