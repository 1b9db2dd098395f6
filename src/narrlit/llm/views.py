"""Views of stories by a language model: theme, plot events and outcome (ttda704)."""

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from narrlit.data.leakage import normal_text
from narrlit.llm.asking import Ask, Asker
from narrlit.llm.generation import Account, GenerationOptions, Shortfall
from narrlit.llm.messages import Reply, Request, Sampling
from narrlit.llm.rounds import Harvest, Rejected, ask_in_rounds, object_in, text_schema
from narrlit.llm.soundness import is_broken, is_placeholder, is_refusal
from narrlit.llm.validation import Measured, ValidationOptions
from narrlit.text.joined import Views, join
from narrlit.text.language import same_language
from narrlit.text.sentences import sentences

SAMPLING = Sampling(max_tokens=2000, temperature=0.3)
"""As the paper extracts views (Appendix A.1)."""

KIND = "views"
EVENTS = (5, 10)
SENTENCES = {"theme": (1, 3), "outcome": (1, 2)}
_SHORT_STORY = 500  # characters; five events alone make the views of a shorter story as long as it
_TEXT = {"type": "string", "minLength": 1}
_READ = text_schema(theme=_TEXT, plot_events={"type": "array", "items": _TEXT}, outcome=_TEXT)
# The server is asked to keep to the number of events; a reply that does not is told from one that fits no schema.
_SENT = text_schema(
    theme=_TEXT,
    plot_events={"type": "array", "items": _TEXT, "minItems": EVENTS[0], "maxItems": EVENTS[1]},
    outcome=_TEXT,
)


@dataclass(frozen=True)
class StoryViews:
    """A story's views as a model gave them; white space between words is one space."""

    theme: str
    events: tuple[str, ...]
    outcome: str

    @property
    def parts(self) -> tuple[str, ...]:
        """Theme, events and outcome, each by itself."""
        return self.theme, *self.events, self.outcome

    @property
    def views(self) -> Views:
        """As files of views are read: an event a line."""
        return Views(self.theme, "\n".join(self.events), self.outcome)


@dataclass(frozen=True)
class Case:
    """Views that a model wrote, and the story they are of."""

    views: StoryViews
    story: Measured
    prompt: str
    options: ValidationOptions


def _has_copies(case: Case) -> bool:
    """Whether a view repeats the story instead of telling what is asked of it."""
    most = 0.8 if case.options.max_overlap is None else case.options.max_overlap
    grams = case.story.grams
    return any(len(Measured(view).grams & grams) > most * len(grams) for view in case.views.views.texts)


def _is_longer(case: Case) -> bool:
    most = case.options.length_ratio * max(_SHORT_STORY, case.story.length)
    return Measured(" ".join(case.views.parts)).length > most


def _has_repeats(case: Case) -> bool:
    parts = [normal_text(part) for part in case.views.parts]
    return len(set(parts)) < len(parts)


def _miscounts(name: str) -> Callable[[Case], bool]:
    least, most = SENTENCES[name]
    return lambda case: not least <= len(sentences(getattr(case.views, name))) <= most


CHECKS: dict[str, Callable[[Case], bool]] = {
    "empty": lambda case: not all(case.views.parts),
    "broken characters": lambda case: any(map(is_broken, case.views.parts)),
    "refusal": lambda case: any(map(is_refusal, case.views.parts)),
    "placeholder": lambda case: any(is_placeholder(part, case.prompt) for part in case.views.parts),
    "number of events": lambda case: not EVENTS[0] <= len(case.views.events) <= EVENTS[1],
    "sentences of the theme": _miscounts("theme"),
    "sentences of the outcome": _miscounts("outcome"),
    "copy of the story": _has_copies,
    "length": _is_longer,
    "repeated": _has_repeats,
    "language": lambda case: not same_language(" ".join(case.views.parts), case.story.text),
}
"""Reasons to refuse views, in the order in which they are looked for."""


class ViewWriter:
    """Asks for the views of one story after the other."""

    def __init__(self, options: GenerationOptions, check: ValidationOptions, seed: int | None) -> None:
        """Load the prompt.

        Raises:
            OptionError: if it can't be read.
        """
        self.prompts = {KIND: options.prompt("views")}
        self._attempts = options.attempts
        self._check = check
        self._sampling = options.sampling(SAMPLING, seed)

    async def write(self, story: str, ask: Ask) -> Harvest[StoryViews]:
        """A story's views, if there are sound ones."""
        if not _can_be_joined(story):
            return Harvest({KIND: []}, Counter({(KIND, "line in the story that marks views"): 1}))
        measured = Measured(story)
        prompt = self.prompts[KIND]
        content = json.dumps({"story": story}, ensure_ascii=False)

        async def send(_: str, attempt: int) -> Reply:
            return await ask(Request(prompt, content, self._sampling, _SENT, attempt))

        def read(_: str, reply: Reply) -> StoryViews:
            views = _views_of(object_in(reply, _READ))
            case = Case(views, measured, prompt.text, self._check)
            fault = next((reason for reason, is_faulty in CHECKS.items() if is_faulty(case)), None)
            if fault is not None:
                raise Rejected(fault)
            return views

        return await ask_in_rounds({KIND: 1}, self._attempts, send, read)


def generate_views(stories: Sequence[str], asker: Asker, writer: ViewWriter) -> tuple[list[dict[str, object]], Account]:
    """Rows of a file of views, as `narrlit.data.views` reads them.

    Args:
        stories: N texts; one that is there already but for case and white space is left out.
        asker: whom to ask.
        writer: what to ask.

    Returns:
        a row for each different story whose views are sound, in order, and the account of all different stories.
    """
    first: dict[str, str] = {}
    for text in stories:
        first.setdefault(normal_text(text), text)
    different = list(first.values())
    harvests = asker.run(different, writer.write, "story")
    rows: list[dict[str, object]] = []
    shortfalls = []
    for number, (text, harvest) in enumerate(zip(different, harvests, strict=True), start=1):
        for found in harvest.taken[KIND]:
            events = list(found.events)
            rows.append({"text": text, "theme": found.theme, "plot_events": events, "outcome": found.outcome})
        if not harvest.taken[KIND]:
            shortfalls.append(Shortfall(f"story {number}", {KIND: 1}, {KIND: harvest.reasons(KIND)}))
    verdicts = sum((harvest.verdicts for harvest in harvests), Counter[tuple[str, str]]())
    return rows, Account(len(different), verdicts, shortfalls)


def _views_of(found: dict[str, Any]) -> StoryViews:
    theme, outcome = (" ".join(str(found[name]).split()) for name in ("theme", "outcome"))
    return StoryViews(theme, tuple(" ".join(str(event).split()) for event in found["plot_events"]), outcome)


def _can_be_joined(story: str) -> bool:
    """Whether encoders of views could read the story together with its views."""
    try:
        join(story, Views("", "", ""))
    except ValueError:
        return False
    return True
