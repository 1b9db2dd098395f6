"""Hard negatives by a language model: stories that are like an anchor in one dimension only (HITS)."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from narrlit.data.records import DIMENSIONS, Example, Negative
from narrlit.llm.asking import Ask, Asker
from narrlit.llm.generation import Account, GenerationOptions, Shortfall
from narrlit.llm.messages import Reply, Request, Sampling
from narrlit.llm.rounds import Harvest, Rejected, ask_in_rounds, object_in, text_schema
from narrlit.llm.validation import Case, Measured, ValidationOptions, faults

SAMPLING = Sampling(max_tokens=1200, temperature=0.8, top_p=0.9)
"""As the paper draws candidates (section 3 and its code)."""

CANDIDATES = 3
_SCHEMAS = {kind: text_schema(**{f"neg_{kind}": {"type": "string", "minLength": 1}}) for kind in DIMENSIONS}


@dataclass(frozen=True)
class Anchor:
    """A story to make negatives for, and the other stories of the rows that it stands in."""

    text: str
    others: tuple[str, ...]


class NegativeWriter:
    """Asks for the negatives of one anchor after the other: one request a candidate."""

    def __init__(self, options: GenerationOptions, check: ValidationOptions, seed: int | None) -> None:
        """Load the prompts.

        Raises:
            OptionError: if one of them can't be read.
        """
        self.prompts = {kind: options.prompt(f"negatives_{kind}") for kind in DIMENSIONS}
        self.wanted = dict.fromkeys(DIMENSIONS, CANDIDATES if options.candidates is None else options.candidates)
        self._measured_prompts = {kind: Measured(prompt.text) for kind, prompt in self.prompts.items()}
        self._attempts = options.attempts
        self._check = check
        self._sampling = options.sampling(SAMPLING, seed)

    async def write(self, anchor: Anchor, ask: Ask) -> Harvest[Negative]:
        """An anchor's sound negatives by kind, as many as wanted or fewer."""
        measured = Measured(anchor.text)
        others = [Measured(text) for text in anchor.others]
        content = json.dumps({"anchor": anchor.text}, ensure_ascii=False)

        async def send(kind: str, attempt: int) -> Reply:
            return await ask(Request(self.prompts[kind], content, self._sampling, _SCHEMAS[kind], attempt))

        def read(kind: str, reply: Reply) -> Negative:
            story = Measured(str(object_in(reply, _SCHEMAS[kind])[f"neg_{kind}"]).strip())
            fault = next(faults(Case(story, measured, others, self._measured_prompts[kind], self._check)), None)
            if fault is not None:
                raise Rejected(fault)
            others.append(story)
            return Negative(story.text, kind)

        return await ask_in_rounds(self.wanted, self._attempts, send, read)


def generate_negatives(
    examples: Sequence[Example], asker: Asker, writer: NegativeWriter
) -> tuple[list[Example], Account]:
    """Training examples with generated negatives behind their own; those of these kinds from before are replaced.

    An anchor that stands in several rows is asked for once, and all of its rows get the same negatives. A row whose
    negatives could not all be made has fewer.

    Args:
        examples: N.
        asker: whom to ask.
        writer: what to ask.

    Returns:
        N examples in their order, and the account of the N rows.
    """
    kept = [replace(e, negatives=tuple(n for n in e.negatives if n.kind not in DIMENSIONS)) for e in examples]
    anchors = _anchors(kept)
    harvests = dict(zip((a.text for a in anchors), asker.run(anchors, writer.write, "anchor"), strict=True))
    made = [_with_negatives(example, harvests[example.anchor]) for example in kept]
    shortfalls = []
    for row, example in enumerate(kept, start=1):
        harvest = harvests[example.anchor]
        lacking = {kind: count - len(harvest.taken[kind]) for kind, count in writer.wanted.items()}
        if any(lacking.values()):
            lacking = {kind: count for kind, count in lacking.items() if count}
            shortfalls.append(Shortfall(f"row {row}", lacking, {kind: harvest.reasons(kind) for kind in lacking}))
    verdicts = sum((harvest.verdicts for harvest in harvests.values()), Counter[tuple[str, str]]())
    return made, Account(len(examples), verdicts, shortfalls)


def _anchors(examples: Sequence[Example]) -> list[Anchor]:
    """Each different anchor once, in order of first appearance."""
    others: dict[str, dict[str, None]] = {}
    for example in examples:
        others.setdefault(example.anchor, {}).update(dict.fromkeys(example.texts[1:]))
    return [Anchor(text, tuple(found)) for text, found in others.items()]


def _with_negatives(example: Example, harvest: Harvest[Negative]) -> Example:
    made = [negative for kind in DIMENSIONS for negative in harvest.taken[kind]]
    return replace(example, negatives=(*example.negatives, *made))
