"""A language model that is shown three stories and how similar a model holds them, and says which candidate is closer.

Comhis (Track A, section 3): what can't be read as A or B is decided by the similarities.
"""

import asyncio
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from narrlit.data.records import Triple
from narrlit.llm.asking import Ask
from narrlit.llm.messages import Request, RequestFailed, Sampling
from narrlit.llm.parsing import Unparsable
from narrlit.prompts.prompt import Prompt

CHOICE: Mapping[str, Any] = {
    "type": "object",
    "properties": {"closer": {"type": "string", "enum": ["A", "B"]}},
    "required": ["closer"],
    "additionalProperties": False,
}
"""Schema of a reply."""

MAX_TOKENS = 64
DIGITS = 4
"""Of the similarities that are shown."""

DISAGREEMENT = "another answer when A and B were swapped"

_FENCE = re.compile(r"```(?:json)?\s*\n(.*)\n\s*```", re.DOTALL)


@dataclass(frozen=True, slots=True)
class ScoredTriple:
    """A triple, and the similarities of (anchor, A) and (anchor, B), cosines from -1 to 1."""

    triple: Triple
    scores: tuple[float, float]

    @property
    def swapped(self) -> "ScoredTriple":
        """The same with A and B in each other's place."""
        return ScoredTriple(Triple(self.triple.anchor, self.triple.b, self.triple.a), self.scores[::-1])


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back for one question.

    Attributes:
        a_is_closer: the choice, if there is one.
        fault: why there is none.
        failed: there was no reply at all, so that asking again may help.
    """

    a_is_closer: bool | None
    fault: str | None = None
    failed: bool = False

    @property
    def swapped(self) -> "Answer":
        """The answer in terms of a triple whose A and B were swapped in the question."""
        return self if self.a_is_closer is None else Answer(not self.a_is_closer)


@dataclass(frozen=True, slots=True)
class Judgement:
    """A judged triple.

    Attributes:
        scores: similarities of (anchor, A) and (anchor, B).
        answers: to the question as the file has A and B and, if it was asked again with both swapped, to that; either
            in terms of the file's A and B.
    """

    scores: tuple[float, float]
    answers: tuple[Answer, ...]

    @property
    def nearer(self) -> bool:
        """Whether A is closer by the similarities; a tie is B's."""
        return self.scores[0] > self.scores[1]

    @property
    def margin(self) -> float:
        """How far apart the similarities are, from 0 to 2."""
        return abs(self.scores[0] - self.scores[1])

    @property
    def verdict(self) -> bool | None:
        """Whether A is closer by the language model; None unless all of its answers say so."""
        choices = {answer.a_is_closer for answer in self.answers}
        return choices.pop() if len(choices) == 1 else None

    @property
    def fallback(self) -> str | None:
        """Why the similarities decide; None where the language model does."""
        if self.verdict is not None:
            return None
        return next((answer.fault for answer in self.answers if answer.fault is not None), DISAGREEMENT)

    @property
    def failed(self) -> bool:
        """Whether a question got no reply at all."""
        return any(answer.failed for answer in self.answers)

    @property
    def a_is_closer(self) -> bool:
        """The decision: the language model's where there is one, else that of the similarities."""
        verdict = self.verdict
        return self.nearer if verdict is None else verdict


@dataclass(frozen=True, slots=True)
class Judge:
    """Asks for each triple.

    Attributes:
        prompt: the instruction.
        seed: sent with each request.
        swap: ask a second time with A and B swapped, and let a choice count only if it is the same story.
    """

    prompt: Prompt
    seed: int | None
    swap: bool = False

    async def __call__(self, item: ScoredTriple, ask: Ask) -> Judgement:
        """Judge one triple. Whatever comes back, there is a judgement."""
        if not self.swap:
            return Judgement(item.scores, (await self._answer(item, ask),))
        first, second = await asyncio.gather(self._answer(item, ask), self._answer(item.swapped, ask))
        return Judgement(item.scores, (first, second.swapped))

    def request(self, item: ScoredTriple) -> Request:
        """The question about one triple."""
        sampling = Sampling(max_tokens=MAX_TOKENS, temperature=0.0, seed=self.seed)
        return Request(self.prompt, content(item), sampling, CHOICE)

    async def _answer(self, item: ScoredTriple, ask: Ask) -> Answer:
        try:
            reply = await ask(self.request(item))
            if reply.finish == "length":
                return Answer(None, "cut-off reply")
            return Answer(read_choice(reply.text))
        except Unparsable as error:
            return Answer(None, error.reason)
        except RequestFailed as error:
            return Answer(None, f"request failed: {error.reason}", failed=True)


def content(item: ScoredTriple) -> str:
    r"""The stories, their similarities and the difference of these as JSON: no text of a story ends its string.

    >>> print(content(ScoredTriple(Triple("x", 'A "y"', "z"), (0.71234, 0.5))))
    {"anchor": "x", "A": "A \"y\"", "B": "z", "similarity_a": 0.7123, "similarity_b": 0.5, "difference": 0.2123}
    """
    a, b = (round(score, DIGITS) + 0.0 for score in item.scores)  # + 0.0: no minus before a zero
    stories = dict(zip(("anchor", "A", "B"), item.triple.texts, strict=True))
    # The difference of the rounded ones, or the three numbers could contradict each other.
    numbers = {"similarity_a": a, "similarity_b": b, "difference": round(a - b, DIGITS) + 0.0}
    return json.dumps({**stories, **numbers}, ensure_ascii=False)


def read_choice(reply: str) -> bool:
    """Whether a reply chooses A: it is the letter A or B alone, or JSON that says one of them and nothing else.

    White space around it and a code fence around the whole are no part of a reply. Nothing is searched for in a reply
    that says more, since it may weigh one candidate against the other, or repeat what a story says.

    Raises:
        Unparsable: for any other reply, with the reason.

    >>> read_choice('{"closer": "A"}'), read_choice("B")
    (True, False)
    """
    text = reply.strip()
    fence = _FENCE.fullmatch(text)
    text = text if fence is None else fence[1].strip()
    if not text:
        raise Unparsable("empty reply")
    if text not in ("A", "B"):
        text = _said(text)
    if text not in ("A", "B"):
        raise Unparsable("JSON without one choice of A or B")
    return text == "A"


def _said(text: str) -> str:
    """What JSON says, or names as closer; nothing where it has another shape.

    Raises:
        Unparsable: if it is no JSON.
    """
    try:
        value = json.loads(text, object_pairs_hook=_one_field)
    except (ValueError, RecursionError) as error:
        raise Unparsable("neither JSON nor the letter alone") from error
    named = value.get("closer") if isinstance(value, dict) else value
    return named if isinstance(named, str) else ""


def _one_field(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object with one field as it is, any other without its fields: one may stand there twice."""
    return dict(pairs) if len(pairs) == 1 else {}
