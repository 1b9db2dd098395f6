"""Questions asked in rounds until enough sound replies are there: every rejected reply is asked for again."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from narrlit.llm.messages import Reply, RequestFailed
from narrlit.llm.parsing import Unparsable, parse_object
from narrlit.llm.soundness import is_refusal

T = TypeVar("T")

SOUND = "sound"
"""The verdict on a reply that is used; every other verdict is a reason."""


class Rejected(Exception):  # noqa: N818 (it says what happened to the reply)
    """A reply that can't be used.

    Attributes:
        reason: short, for counting.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True)
class Harvest(Generic[T]):
    """What the rounds gave.

    Attributes:
        taken: by kind, what was read from the sound replies, in the order of their attempts.
        verdicts: how many replies of each kind met which end: (kind, SOUND) or (kind, reason).
    """

    taken: dict[str, list[T]]
    verdicts: Counter[tuple[str, str]] = field(default_factory=Counter)

    def reasons(self, kind: str) -> dict[str, int]:
        """Why replies of a kind could not be used, and how many."""
        return {verdict: count for (of, verdict), count in self.verdicts.items() if of == kind and verdict != SOUND}


async def ask_in_rounds(
    wanted: Mapping[str, int],
    rounds: int,
    send: Callable[[str, int], Awaitable[Reply]],
    read: Callable[[str, Reply], T],
) -> Harvest[T]:
    """Ask for several kinds of things at once, and again for those whose replies were rejected.

    Replies are read when all of their round are there, in a fixed order: what a reply is compared with does not depend
    on which came first, and a resumed job comes to the same end. A request that fails is not asked again here.

    Args:
        wanted: how many of each kind are needed.
        rounds: how often is asked at most.
        send: send(kind, attempt) asks; attempts of a kind are numbered 0, 1, ...; may raise RequestFailed.
        read: read(kind, reply) gives what is taken; raises Rejected.
    """
    harvest: Harvest[T] = Harvest({kind: [] for kind in wanted})
    next_attempt = dict.fromkeys(wanted, 0)
    failed = dict.fromkeys(wanted, 0)

    async def answer(kind: str, attempt: int) -> tuple[str, Reply | RequestFailed]:
        try:
            return kind, await send(kind, attempt)
        except RequestFailed as failure:
            return kind, failure

    for _ in range(rounds):
        due = {kind: count - len(harvest.taken[kind]) - failed[kind] for kind, count in wanted.items()}
        questions = [(kind, next_attempt[kind] + more) for kind, count in due.items() for more in range(count)]
        if not questions:
            break
        for kind, reply in await asyncio.gather(*(answer(*question) for question in questions)):
            next_attempt[kind] += 1
            if isinstance(reply, RequestFailed):
                failed[kind] += 1
                harvest.verdicts[kind, f"no answer: {reply.reason}"] += 1
                continue
            try:
                harvest.taken[kind].append(read(kind, reply))
                harvest.verdicts[kind, SOUND] += 1
            except Rejected as rejected:
                harvest.verdicts[kind, rejected.reason] += 1
    return harvest


def object_in(reply: Reply, schema: Mapping[str, Any]) -> dict[str, Any]:
    """The object of a whole reply.

    Raises:
        Rejected: if the reply was cut off, refuses, or holds no object that fits the schema.
    """
    if reply.finish == "length":
        raise Rejected("cut off")
    if reply.finish == "content_filter":
        raise Rejected("refusal")
    try:
        return parse_object(reply.text, schema)
    except Unparsable as fault:
        raise Rejected("refusal" if is_refusal(reply.text) else "unparsable") from fault


def text_schema(**fields: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON schema of an object with these fields and no others."""
    return {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False}
