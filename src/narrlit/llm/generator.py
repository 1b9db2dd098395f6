"""Generation of negatives and views by a language model, with checks and retries."""

import asyncio
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Annotated, Any, Generic, TypeVar

import pandas as pd
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, ValidationError, create_model

from narrlit.llm.cache import Reply
from narrlit.llm.checks import NEGATIVE_CHECKS, VIEW_CHECKS, Check, SourceStory
from narrlit.llm.client import LLM
from narrlit.llm.completions import RequestFailed
from narrlit.llm.options import GenerationOptions
from narrlit.llm.requests import Request, Sampling
from narrlit.prompts import Prompt

Schema = TypeVar("Schema", bound=BaseModel)

ACCEPTED = "accepted"
"""Verdict on a reply that is used; any other verdict is the reason for a rejection."""

NEGATIVE_KEYS = {"theme": "neg_theme", "action": "neg_structure", "outcome": "neg_outcome"}
"""Keys of replies by aspect, as published by HITS."""

NEGATIVES_PER_ASPECT = 3
"""Default number of negatives for each aspect."""

NEGATIVE_SAMPLING = Sampling(max_tokens=1200, temperature=0.8, top_p=0.9)
"""Source: HITS (SemEval-2026 Task 4), section 4.3; the number of tokens is that of its published code."""

VIEW_SAMPLING = Sampling(max_tokens=2000, temperature=0.3)
"""Source: ttda704 (SemEval-2026 Task 4), Appendix A.1."""

FINISH_VERDICTS = {"content_filter": "refusal", "refusal": "refusal", "length": "cut off"}
"""Verdicts on replies by finish reason."""

MAX_STRAY_BRACES = 100
"""Number of braces without an object after which the search in a reply ends."""
_THOUGHT = re.compile(r"\A\s*<think>.*?(?:</think>|\Z)", re.DOTALL)
_OBJECT = re.compile(r'\{(?=\s*["}])')

ReplyText = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
Line = Annotated[ReplyText, AfterValidator(lambda text: " ".join(text.split()))]


class ViewsReply(BaseModel):
    """Views of a story, as a language model writes them."""

    # The title is a part of requests, by which replies are cached.
    model_config = ConfigDict(extra="forbid", title="StoryViews")
    theme: Line
    plot_events: list[Line] = Field(min_length=5, max_length=10)
    outcome: Line


def _negative_schema(aspect: str, key: str) -> type[BaseModel]:
    """Build the schema of a negative whose text is under `key`."""
    fields: dict[str, Any] = {key: (ReplyText, ...)}
    return create_model(f"Negative_{aspect}", __config__=ConfigDict(extra="forbid"), **fields)


NEGATIVE_SCHEMAS = {aspect: _negative_schema(aspect, key) for aspect, key in NEGATIVE_KEYS.items()}


class Rejected(Exception):  # noqa: N818 (a verdict on a reply)
    """Reply that can't be used; the message is the reason, by which rejections are counted."""


def parse_reply(text: str, schema: type[Schema]) -> Schema:
    """Read the JSON object in the text of a reply; raise Rejected if there is none, or it does not fit the schema."""
    answer = _THOUGHT.sub("", text)
    objects = list(_objects(answer))
    if len(objects) != 1:
        raise Rejected("several JSON objects" if objects else "no JSON object")
    try:
        return schema.model_validate(objects[0])
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
    if first["type"] == "extra_forbidden":
        raise Rejected("unexpected key")
    kind = "empty" if first["type"] == "string_too_short" else first["type"].replace("_", " ")
    raise Rejected(f"{first['loc'][0]} {kind}" if first["loc"] else kind)


def _objects(text: str) -> Iterator[object]:
    """Yield the JSON objects in a text, in time that is linear in its length."""
    decoder = json.JSONDecoder(strict=False)  # models write line breaks inside strings
    end, failures = 0, 0
    for brace in _OBJECT.finditer(text):
        if brace.start() < end:
            continue
        try:
            value, end = decoder.raw_decode(text, brace.start())
            yield value
        except (ValueError, RecursionError):
            failures += 1
            if failures == MAX_STRAY_BRACES:
                return


@dataclass(frozen=True)
class Generator(Generic[Schema]):
    """Requests for texts of one kind, and checks of the replies.

    Attributes:
        prompt: prompt of the requests.
        schema: schema of a reply.
        checks: functions that find a fault of a reply, by the name of the fault.
        sampling: sampling parameters.
    """

    prompt: Prompt
    schema: type[Schema]
    checks: Mapping[str, Check]
    sampling: Sampling

    def request(self, fields: Mapping[str, str], seed: int) -> Request:
        """Build a request.

        Args:
            fields: texts by their names in the user message.
            seed: seed of the model's sampling.
        """
        return Request(self.prompt, self.prompt.content(fields), self.schema, self.sampling, seed)

    def read(self, reply: Reply, source: SourceStory) -> Schema:
        """Return the validated reply; raise Rejected with the reason if it can't be used."""
        verdict = FINISH_VERDICTS.get(reply.finish or "")
        if verdict is not None:
            raise Rejected(verdict)
        parsed = parse_reply(reply.text, self.schema)
        texts = reply_texts(parsed)
        for reason, has_fault in self.checks.items():
            if has_fault(texts, source):
                raise Rejected(reason)
        return parsed


def reply_texts(reply: BaseModel) -> list[str]:
    """List the texts of a reply in the order of its fields."""
    texts = []
    for value in reply.model_dump().values():
        texts += value if isinstance(value, list) else [value]
    return texts


@dataclass
class _WantedTexts(Generic[Schema]):
    """Texts of one kind that are requested for a story, until enough are accepted.

    Attributes:
        generator: requests, and checks of the replies.
        missing: number of texts to request.
        next_seed: seed of the next request.
        accepted: validated replies.
        verdicts: number of replies by verdict.
        rejected: requests whose replies were rejected.
    """

    generator: Generator[Schema]
    missing: int
    next_seed: int
    accepted: list[Schema] = field(default_factory=list)
    verdicts: Counter[str] = field(default_factory=Counter)
    rejected: list[Request] = field(default_factory=list)

    def requests(self, fields: Mapping[str, str]) -> list[Request]:
        """Build a request for each missing text, each with a new seed."""
        seeds = range(self.next_seed, self.next_seed + self.missing)
        self.next_seed = seeds.stop
        return [self.generator.request(fields, seed) for seed in seeds]

    def add(self, request: Request, reply: Reply | RequestFailed, source: SourceStory) -> None:
        """Check the reply to a request, and count the verdict; accepted texts are added to `source.others`."""
        if isinstance(reply, RequestFailed):  # already retried; a later run sends it again
            self.missing -= 1
            self.verdicts[f"no answer: {reply.reason}"] += 1
            return
        try:
            accepted = self.generator.read(reply, source)
        except Rejected as rejected:
            self.verdicts[str(rejected)] += 1
            self.rejected.append(request)
            return
        self.missing -= 1
        self.verdicts[ACCEPTED] += 1
        self.accepted.append(accepted)
        source.others.extend(reply_texts(accepted))


@dataclass
class Generated:
    """Validated replies for one story by kind, and the number of replies by (kind, verdict)."""

    accepted: dict[str, list[Any]]
    verdicts: Counter[tuple[str, str]] = field(default_factory=Counter)

    def reasons(self, kind: str) -> dict[str, int]:
        """Count the replies of a kind that were not accepted, by reason."""
        counts = {}
        for (kind_of_reply, verdict), count in self.verdicts.items():
            if kind_of_reply == kind and verdict != ACCEPTED:
                counts[verdict] = count
        return counts


async def generate_texts(
    llm: LLM, generators: Mapping[str, Generator[Any]], source: SourceStory, field: str, count: int, attempts: int
) -> Generated:
    """Request replies about a story, and replace the rejected ones.

    Replies are checked in a fixed order, after all replies of an attempt have arrived. Therefore the result does not
    depend on their timing, and a resumed job has the same result as an uninterrupted one. Accepted texts are added to
    `source.others`. If too few are accepted, a later run requests the rejected ones again.

    Args:
        llm: the language model.
        generators: generators by kind of text.
        source: the story.
        field: name of the story in the user message.
        count: number of replies of each kind.
        attempts: maximum number of attempts at each reply.
    """
    wanted = {kind: _WantedTexts(generator, count, llm.options.seed) for kind, generator in generators.items()}
    for _ in range(attempts):
        requests: list[tuple[_WantedTexts[Any], Request]] = []
        for texts in wanted.values():
            requests += [(texts, request) for request in texts.requests({field: source.text})]
        replies = await asyncio.gather(*(_reply_or_failure(llm, request) for _, request in requests))
        for (texts, request), reply in zip(requests, replies, strict=True):
            texts.add(request, reply, source)
    generated = Generated({})
    for kind, texts in wanted.items():
        generated.accepted[kind] = texts.accepted
        for verdict, number in texts.verdicts.items():
            generated.verdicts[kind, verdict] = number
        if len(texts.accepted) < count:
            for request in texts.rejected:
                llm.discard(request)
    return generated


async def _reply_or_failure(llm: LLM, request: Request) -> Reply | RequestFailed:
    """Send a request; return the failure instead of raising it."""
    try:
        return await llm.ask(request)
    except RequestFailed as failure:
        return failure


def negative_generators(llm: LLM, options: GenerationOptions) -> dict[str, Generator[Any]]:
    """Return the generators of hard negatives by aspect: stories that share only this aspect with the anchor (HITS)."""
    sampling = NEGATIVE_SAMPLING.with_options(llm.options)
    generators = {}
    for aspect, schema in NEGATIVE_SCHEMAS.items():
        prompt = options.prompt(f"negatives_{aspect}")
        generators[aspect] = Generator(prompt, schema, NEGATIVE_CHECKS, sampling)
    return generators


def generate_negatives(llm: LLM, anchors: Mapping[str, Sequence[str]], options: GenerationOptions) -> list[Generated]:
    """Generate negatives for N anchors; no negative may repeat the other stories of its anchor's examples.

    Args:
        llm: the language model.
        anchors: other stories by anchor.
        options: number of texts and attempts, and which texts are accepted.
    """
    generators, count = negative_generators(llm, options), options.candidates or NEGATIVES_PER_ASPECT

    async def work(anchor: str) -> Generated:
        source = SourceStory(anchor, list(anchors[anchor]), options.length_ratio, options.allow_names)
        generated = await generate_texts(llm, generators, source, "anchor", count, options.attempts)
        for kind, replies in generated.accepted.items():  # each reply has one text
            generated.accepted[kind] = [reply_texts(reply)[0] for reply in replies]
        return generated

    return llm.run(list(anchors), work, "anchor")


def view_generator(llm: LLM, options: GenerationOptions) -> Generator[ViewsReply]:
    """Return the generator of views: theme, plot events and outcome (ttda704)."""
    return Generator(options.prompt("views"), ViewsReply, VIEW_CHECKS, VIEW_SAMPLING.with_options(llm.options))


def generate_views(llm: LLM, stories: Sequence[str], options: GenerationOptions) -> list[Generated]:
    """Generate views of N stories; `accepted["views"]` of each result contains one ViewsReply or none."""
    generators = {"views": view_generator(llm, options)}

    async def work(story: str) -> Generated:
        source = SourceStory(story, length_ratio=options.length_ratio)
        return await generate_texts(llm, generators, source, "story", 1, options.attempts)

    return llm.run(stories, work, "story")


@dataclass(frozen=True)
class MissingTexts:
    """Number of missing texts of one kind, and number of rejected replies by reason."""

    missing: int
    reasons: dict[str, int]

    def describe(self, kind: str) -> str:
        """Describe the missing texts: `2 theme (5 cut off, 3 length)`."""
        reasons = ", ".join(f"{count} {reason}" for reason, count in self.reasons.items())
        return f"{self.missing} {kind} ({reasons})"


class GenerationSummary:
    """Counts of a job.

    Attributes:
        items: number of anchors or stories.
        verdicts: number of replies by (kind, verdict).
        incomplete: missing texts of incomplete items, by name and kind.
    """

    def __init__(self, results: Mapping[str, Generated], count: int) -> None:
        self.items = len(results)
        # Rows with the same anchor have one result, whose replies count once.
        different = {id(result): result for result in results.values()}
        self.verdicts = Counter[tuple[str, str]]()
        for result in different.values():
            self.verdicts += result.verdicts
        self.incomplete: dict[str, dict[str, MissingTexts]] = {}
        for name, result in results.items():
            for kind, accepted in result.accepted.items():
                if len(accepted) < count:
                    missing = MissingTexts(count - len(accepted), result.reasons(kind))
                    self.incomplete.setdefault(name, {})[kind] = missing

    def lines(self) -> list[str]:
        """Describe each incomplete item: `row 3 lacks 2 theme (5 cut off, 3 length)`."""
        lines = []
        for name, by_kind in self.incomplete.items():
            missing_texts = [missing.describe(kind) for kind, missing in by_kind.items()]
            lines.append(f"{name} lacks {', '.join(missing_texts)}")
        return lines

    def table(self) -> str:
        """Format the number of replies by verdict and kind."""
        kinds = list(dict.fromkeys(kind for kind, _ in self.verdicts))
        frame = pd.Series(self.verdicts).unstack(0, fill_value=0)[kinds].astype(int)
        frame["all"] = frame.sum(axis=1)

        def rank(verdict: str) -> tuple[bool, int, str]:
            return verdict != ACCEPTED, -frame["all"][verdict], verdict

        table = frame.loc[sorted(frame.index, key=rank)].rename_axis("replies", axis=1)
        return str(table.to_string())

    def report(self, llm: LLM, options: GenerationOptions) -> dict[str, object]:
        """Return plain data for a report: counts, usage, options."""
        replies: dict[str, dict[str, int]] = {}
        for (kind, verdict), count in sorted(self.verdicts.items()):
            replies.setdefault(kind, {})[verdict] = count
        incomplete: dict[str, dict[str, object]] = {}
        for name, by_kind in self.incomplete.items():
            incomplete[name] = {kind: asdict(missing) for kind, missing in by_kind.items()}
        return {
            "items": self.items,
            "complete": self.items - len(self.incomplete),
            "replies": replies,
            "incomplete": incomplete,
            "usage": llm.usage.as_dict(),
            "llm": llm.options.record(),
            "generation": asdict(options),
        }
