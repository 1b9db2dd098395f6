"""`narrlit.generate`: hard negatives of training examples, or views of stories, written by a language model."""

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

import pandas as pd

from narrlit.console import say
from narrlit.data.readers import read_any, read_examples, say_rows
from narrlit.data.rows import Layout, file_digest
from narrlit.data.schema import ASPECTS, Story, StoryTable, TrainingExample, TrainingExamples, normal_text
from narrlit.data.writers import write_examples, write_rows
from narrlit.errors import OptionError
from narrlit.files import check_continued, write_text
from narrlit.json_records import json_digest
from narrlit.llm.client import LLM
from narrlit.llm.generator import (
    NEGATIVES_PER_ASPECT,
    Generated,
    GenerationSummary,
    Generator,
    ViewsReply,
    generate_negatives,
    generate_views,
    negative_generators,
    view_generator,
)
from narrlit.llm.options import GenerationOptions, LLMOptions

TextKind = Literal["negatives", "views"]
REPORT, ANSWERS = ".report.json", ".answers.sqlite"
"""Suffixes of the files next to the texts: counts and settings, and the language model's replies."""
SHOWN = 5
"""Maximum number of incomplete examples or stories that are described one by one."""


@dataclass(frozen=True, eq=False)
class Generation(ABC):
    """Texts that a language model wrote for N training examples or stories.

    Attributes:
        summary: number of replies by verdict, and incomplete examples or stories.
        settings: settings that determine the texts, and counts of replies and requests, as plain data.
    """

    summary: GenerationSummary
    settings: dict[str, object]

    @property
    def num_complete(self) -> int:
        """Number of training examples or stories with all of their texts."""
        return self.summary.items - len(self.summary.incomplete)

    @property
    def incomplete(self) -> list[str]:
        """Missing texts of the others, with reasons: `row 3 lacks 2 theme (5 cut off, 3 length)`."""
        return self.summary.lines()

    @property
    def failures(self) -> str:
        """First incomplete examples or stories, one per line; empty if all are complete."""
        lines = self.incomplete[:SHOWN]
        further = len(self.incomplete) - SHOWN
        if further > 0:
            lines.append(f"and {further:,} more, listed in the report")
        return "\n".join(lines)

    @abstractmethod
    def table(self) -> pd.DataFrame:
        """Tabulate the new texts."""

    def write(self, path: str | Path) -> None:
        """Write the texts (.jsonl) and, next to them, NAME.report.json with counts and settings."""
        self.write_texts(Path(path))
        write_text(f"{path}{REPORT}", json.dumps(self.settings, indent=2, ensure_ascii=False) + "\n")

    @abstractmethod
    def write_texts(self, path: Path) -> None:
        """Write the texts as `narrlit fit` reads them."""

    def __str__(self) -> str:
        """Number of replies by verdict and kind."""
        return self.summary.table()


@dataclass(frozen=True, eq=False)
class GeneratedNegatives(Generation):
    """Hard negatives: stories that share only the theme, the action or the outcome of an anchor.

    Attributes:
        examples: the training examples, with new negatives after their own.
    """

    examples: TrainingExamples

    def table(self) -> pd.DataFrame:
        """Tabulate the new negatives: row of the example from 1, aspect, anchor, text."""
        rows = []
        stories = self.examples.stories
        for number, example in enumerate(self.examples, start=1):
            anchor = stories[example.anchor].text
            for index, kind in zip(example.negatives, example.kinds, strict=True):
                if kind in ASPECTS:
                    text = stories[index].text
                    rows.append({"row": number, "aspect": kind, "anchor": anchor, "text": text})
        return pd.DataFrame(rows, columns=["row", "aspect", "anchor", "text"])

    def write_texts(self, path: Path) -> None:
        """Write the training examples."""
        write_examples(path, self.examples)


@dataclass(frozen=True, eq=False)
class GeneratedViews(Generation):
    """Views of stories: theme, plot events and outcome.

    Attributes:
        views: views by the text of their story.
    """

    views: Mapping[str, ViewsReply]

    @property
    def rows(self) -> list[dict[str, object]]:
        """Rows of a file of views."""
        return [{"text": text, **views.model_dump()} for text, views in self.views.items()]

    def table(self) -> pd.DataFrame:
        """Tabulate the views: text of the story, theme, plot_events, outcome."""
        return pd.DataFrame(self.rows, columns=["text", *ViewsReply.model_fields])

    def write_texts(self, path: Path) -> None:
        """Write the views, if there are any."""
        if self.views:
            write_rows(path, self.rows)
        else:
            say(f"no views were accepted: {path} is not written")


def generate(
    kind: TextKind,
    source: str | Path | TrainingExamples | Sequence[str] | Sequence[Story],
    *,
    llm: LLMOptions,
    out: str | Path,
    options: GenerationOptions = GenerationOptions(),
    layout: Layout = Layout(),
    overwrite: bool = False,
    progress: bool = False,
) -> Generation:
    """Generate hard negatives of training examples, or views of stories, with a language model.

    A reply that fails a check is requested again, up to `options.attempts` times, and counted by reason. The same call
    after an interruption resumes from the replies in OUT.answers.sqlite.

    Args:
        kind: `negatives` (stories that share only the theme, the action or the outcome of the anchor) or `views`
            (theme, events, outcome).
        source: for negatives, a file of training examples or labeled triples, or training examples; for views, a file
            of stories, triples or training examples, or stories, or texts.
        llm: the language model.
        out: file to write (.jsonl); OUT.report.json is written next to it.
        options: number of texts and attempts, and which texts are accepted.
        layout: columns and lines of a file of stories.
        overwrite: replace the files of a call with other settings.
        progress: print how the source was read and the number of requests, and show a progress bar, on stderr.

    Returns:
        A `GeneratedNegatives` or `GeneratedViews`: `.table()`, `.incomplete`, `.write(path)`. It is printed as the
        number of replies by verdict.

    Raises:
        DataError: if the source can't be read.
        ModelError: if the server refuses the first request.
        OptionError: if `out` was made with other settings, or no server or model is named.
    """
    target = Path(out)
    if target.suffix != ".jsonl":
        raise OptionError("wrong_suffix", path=target, suffixes=[".jsonl"])
    if kind == "views" and (options.candidates or options.allow_names):
        raise OptionError("options_of_negatives")
    report = Path(f"{target}{REPORT}")
    model = LLM(llm, Path(f"{target}{ANSWERS}"), progress)
    file = source if isinstance(source, str | Path) else None
    job: Job
    if kind == "negatives":
        job = NegativesJob(model, options, file, _read_examples(source, progress))
    else:
        job = ViewsJob(model, options, file, _read_texts(source, layout, progress))
    check_continued((target, report), report, job.digest, overwrite)
    result = job.run()
    result.write(target)
    if progress:
        say(f"{result.num_complete} of {result.summary.items} complete; {model.usage.summary()}")
        if result.incomplete:
            say(result.failures)
    return result


@dataclass(frozen=True, eq=False)
class Job(ABC):
    """Everything that determines the texts of a call.

    Attributes:
        model: the language model.
        options: options of the texts.
        file: file from which the source was read, if any.
    """

    model: LLM
    options: GenerationOptions
    file: str | Path | None

    @property
    @abstractmethod
    def kind(self) -> TextKind:
        """Kind of the texts: negatives or views."""

    @property
    @abstractmethod
    def generators(self) -> list[Generator[Any]]:
        """Generators: prompts, checks and sampling."""

    @property
    @abstractmethod
    def content(self) -> Sequence[object]:
        """Sources of the texts, as plain data."""

    @abstractmethod
    def run(self) -> Generation:
        """Request the texts."""

    @property
    def digest(self) -> str:
        """Digest of the job; a call with the same digest resumes an earlier one."""
        llm = self.model.options
        model = [llm.endpoint().model, llm.seed, asdict(self.generators[0].sampling)]
        return json_digest([self.kind, self.content, asdict(self.options), self._prompts, model])

    def record(self, summary: GenerationSummary) -> dict[str, object]:
        """Return plain data for the report: settings, counts of replies, and counts of requests."""
        return {
            "settings": self.digest,
            "kind": self.kind,
            "file": None if self.file is None else str(self.file),
            "sha256": None if self.file is None else file_digest(self.file),
            "prompts": self._prompts,
            "sampling": asdict(self.generators[0].sampling),
            **summary.report(self.model, self.options),
        }

    @property
    def _prompts(self) -> dict[str, str]:
        """Digests of the prompts by name."""
        return {generator.prompt.name: generator.prompt.digest for generator in self.generators}


@dataclass(frozen=True, eq=False)
class NegativesJob(Job):
    """Generation of negatives, which replace those of an earlier call."""

    examples: TrainingExamples

    @property
    def kind(self) -> TextKind:
        """Kind of the texts: negatives."""
        return "negatives"

    @property
    def generators(self) -> list[Generator[Any]]:
        """Generators, one for each aspect."""
        return list(negative_generators(self.model, self.options).values())

    @property
    def content(self) -> Sequence[object]:
        """Texts, kinds of negatives and group of each example."""
        pairs = zip(self.examples, self.examples.texts(), strict=True)
        return [[texts, example.kinds, example.group] for example, texts in pairs]

    def run(self) -> GeneratedNegatives:
        """Request negatives for each different anchor; none may repeat a story of the anchor's examples."""
        table = StoryTable.of(self.examples.stories.texts)
        examples = [_without_generated(example) for example in self.examples]
        others = _others_by_anchor(examples, table)
        results = generate_negatives(self.model, others, self.options)
        by_anchor = dict(zip(others, results, strict=True))
        by_row: dict[str, Generated] = {}
        rows = []
        for number, example in enumerate(examples, start=1):
            result = by_anchor[table[example.anchor].text]
            by_row[f"row {number}"] = result
            rows.append(_with_negatives(example, result, table))
        summary = GenerationSummary(by_row, self.options.candidates or NEGATIVES_PER_ASPECT)
        return GeneratedNegatives(summary, self.record(summary), TrainingExamples(table, rows))


@dataclass(frozen=True, eq=False)
class ViewsJob(Job):
    """Generation of views of texts."""

    texts: list[str]

    @property
    def kind(self) -> TextKind:
        """Kind of the texts: views."""
        return "views"

    @property
    def generators(self) -> list[Generator[Any]]:
        """The generator of views."""
        return [view_generator(self.model, self.options)]

    @property
    def content(self) -> Sequence[object]:
        """The texts."""
        return self.texts

    def run(self) -> GeneratedViews:
        """Request the views of each text."""
        results = generate_views(self.model, self.texts, self.options)
        by_story = {f"story {number}": result for number, result in enumerate(results, start=1)}
        summary = GenerationSummary(by_story, 1)
        views = {}
        for text, result in zip(self.texts, results, strict=True):
            for accepted in result.accepted["views"]:
                views[text] = accepted
        return GeneratedViews(summary, self.record(summary), views)


def _read_examples(source: object, progress: bool) -> TrainingExamples:
    """Return training examples, or read them from a file."""
    if isinstance(source, TrainingExamples):
        return source
    if not isinstance(source, str | Path):
        raise OptionError("source_of_negatives")
    examples = read_examples(source)
    if progress:
        say_rows(examples)
    return examples


def _read_texts(source: Any, layout: Layout, progress: bool) -> list[str]:
    """Collect the texts of stories or of a file; texts that differ only in case and white space count once."""
    if isinstance(source, str | Path):
        stories = read_any(source, layout=layout)
        if progress:
            say(stories.report.summary())
        texts = [story.text for story in stories]
    elif isinstance(source, TrainingExamples):
        texts = source.stories.texts
    else:
        texts = [story if isinstance(story, str) else story.text for story in source]
    first: dict[str, str] = {}
    for text in texts:
        first.setdefault(normal_text(text), text)
    return list(first.values())


def _without_generated(example: TrainingExample) -> TrainingExample:
    """Remove the negatives of an earlier call."""
    negatives, kinds = [], []
    for index, kind in zip(example.negatives, example.kinds, strict=True):
        if kind not in ASPECTS:
            negatives.append(index)
            kinds.append(kind)
    return replace(example, negatives=tuple(negatives), kinds=tuple(kinds))


def _others_by_anchor(examples: Sequence[TrainingExample], table: StoryTable) -> dict[str, list[str]]:
    """Collect the texts of the other stories in an anchor's examples, by the text of the anchor."""
    others: dict[str, list[str]] = {}
    for example in examples:
        anchor, *texts = [table[index].text for index in example.indices]
        others.setdefault(anchor, []).extend(texts)
    return others


def _with_negatives(example: TrainingExample, result: Generated, table: StoryTable) -> TrainingExample:
    """Add accepted texts to the table, and append them to the negatives of an example."""
    negatives, kinds = list(example.negatives), list(example.kinds)
    for aspect in ASPECTS:
        for text in result.accepted[aspect]:
            negatives.append(table.add(text))
            kinds.append(aspect)
    return replace(example, negatives=tuple(negatives), kinds=tuple(kinds))
