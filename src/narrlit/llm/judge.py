"""A language model that reads three stories with their similarities and decides which candidate is closer.

Source: Comhis (SemEval-2026 Task 4), section on Track A. A reply without a choice falls back to the similarities.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel, ConfigDict

from narrlit.data.readers import LABEL
from narrlit.llm.cache import Reply
from narrlit.llm.client import LLM
from narrlit.llm.completions import RequestFailed
from narrlit.llm.generator import Rejected, parse_reply
from narrlit.llm.requests import Request, Sampling
from narrlit.prompts import Prompt

SAMPLING = Sampling(max_tokens=64, temperature=0.0)
DIGITS = 4
"""Digits of the similarities in a request."""

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


@dataclass(frozen=True, slots=True)
class Answer:
    """Choice between the file's A and B, or the reason why there is none; `failed`: there was no reply."""

    a_is_closer: bool | None
    fault: str | None = None
    failed: bool = False


@dataclass(frozen=True, slots=True)
class Judgement:
    """A judged triple: its cosines, and the answers to the request as in the file and, with `swap`, swapped."""

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
        """Reason for falling back to the similarities; None if the language model decides."""
        if self.choice is not None:
            return None
        return next((answer.fault for answer in self.answers if answer.fault), DISAGREEMENT)

    @property
    def failed(self) -> bool:
        """True if a request got no reply."""
        return any(answer.failed for answer in self.answers)

    @property
    def a_is_closer(self) -> bool:
        """Decision of both together."""
        return self.by_similarity if self.choice is None else self.choice

    def as_dict(self) -> dict[str, object]:
        """Return plain data for a file of rows."""
        similarities = dict(zip(("similarity_a", "similarity_b"), self.scores, strict=True))
        answers = [answer.a_is_closer for answer in self.answers]
        return {**similarities, "answers": answers, "fallback": self.fallback, LABEL: self.a_is_closer}


def judge_triples(llm: LLM, triples: Sequence[ScoredTriple], prompt: Prompt, swap: bool = False) -> list[Judgement]:
    """Judge N triples; with `swap` a second time, A and B swapped, and a choice counts only if it stays the same."""
    sampling = SAMPLING.with_options(llm.options)

    async def answer(triple: ScoredTriple, swapped: bool) -> Answer:
        anchor, a, b = triple.texts
        shown = ScoredTriple((anchor, b, a), triple.scores[::-1]) if swapped else triple
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
        orders = (False, True) if swap else (False,)
        return Judgement(triple.scores, tuple(await asyncio.gather(*(answer(triple, order) for order in orders))))

    return llm.run(triples, work, "triple")


def values(triple: ScoredTriple) -> dict[str, object]:
    """List stories, similarities and their difference by name.

    >>> values(ScoredTriple(("x", "y", "z"), (0.71234, 0.5)))
    {'anchor': 'x', 'A': 'y', 'B': 'z', 'similarity_a': 0.7123, 'similarity_b': 0.5, 'difference': 0.2123}
    """
    a, b = (round(score, DIGITS) + 0.0 for score in triple.scores)  # + 0.0: no minus before a zero
    # The difference of the rounded ones, or the three numbers could contradict each other.
    numbers = {"similarity_a": a, "similarity_b": b, "difference": round(a - b, DIGITS) + 0.0}
    return {**dict(zip(("anchor", "A", "B"), triple.texts, strict=True)), **numbers}


def _choice_of(reply: Reply) -> bool:
    """Return True if a reply that is whole chooses A; Rejected for any other reply."""
    if reply.finish == "length":
        raise Rejected("cut off")
    return read_choice(reply.text)


def read_choice(text: str) -> bool:
    """Return True if a reply, the letter alone or JSON, chooses A; Rejected for any other reply.

    >>> read_choice('{"closer": "A"}'), read_choice(" B ")
    (True, False)
    """
    letter = text.strip().strip('".')
    if not letter:
        raise Rejected("empty")
    return (letter if letter in ("A", "B") else parse_reply(text, Choice).closer) == "A"
