"""narrlit generate: hard negatives or views of stories, written by a language model."""

import json
from dataclasses import asdict, replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from narrlit.console import say
from narrlit.data.readers import Stories, read_any, read_examples, say_rows
from narrlit.data.rows import file_digest
from narrlit.data.schema import ASPECTS, StoryTable, TrainingExamples, normal_text
from narrlit.data.writers import write_examples, write_rows
from narrlit.errors import OptionError
from narrlit.files import Output, OutputOptions, check_free, check_writable, made_with, write_text
from narrlit.llm.client import LLMOptions
from narrlit.llm.generator import GenerationOptions
from narrlit.options import InputOptions

if TYPE_CHECKING:
    from narrlit.llm.client import LLM
    from narrlit.llm.generator import GenerationSummary, Generator

REPORT, CACHE = ".report.json", ".answers.sqlite"
"""Endings of the files beside the output."""

SHOWN = 5


def generate(
    kind: Literal["negatives", "views"],
    file: str,
    *,
    out: Annotated[str, Output("{path}", f"{{path}}{REPORT}", f"{{path}}{CACHE}", continued=True)],
    output_options: OutputOptions,
    inputs: InputOptions,
    generation: GenerationOptions,
    llm: LLMOptions,
) -> int:
    """Generate hard negatives of training examples, or views of stories, with a language model.

    A reply that fails a check is retried and counted by reason; the counts are printed and written to OUT.report.json.
    The same command after an interruption resumes from OUT.answers.sqlite. Exit code 1: some items are incomplete (what
    is there was written).

    Args:
        kind: negatives (stories like the anchor in theme, action or outcome alone) or views (theme, events, outcome).
        file: training examples or labeled triples for negatives; stories, triples or training examples for views.
        out: file to write (.jsonl).
        output_options: whether texts of other settings are replaced.
        inputs: how a file of stories is read.
        generation: texts to generate.
        llm: language model.
    """
    from narrlit.llm.client import LLM

    target = Path(out)
    report_file = target.with_name(target.name + REPORT)
    cache = Path(llm.answer_cache or target.with_name(target.name + CACHE))
    if target.suffix != ".jsonl":
        raise OptionError(f"--out {target}: must end in .jsonl")
    if kind == "views" and (generation.candidates or generation.allow_names):
        raise OptionError("--candidates and --allow-names apply to negatives only: leave them out")
    for path in (target, report_file):
        check_writable(path)
    digest = _settings_digest(kind, file, inputs, generation, llm)
    if not made_with(report_file, digest):
        check_free((target, report_file), output_options.overwrite, ", made with other settings")
    model = LLM(llm, cache)
    if kind == "negatives":
        summary, generators = _negatives(file, model, generation, target)
    else:
        summary, generators = _views(read_any(file, layout=inputs.layout), model, generation, target)
    prompts = {generator.prompt.name: generator.prompt.digest for generator in generators}
    content = {"settings": digest, "kind": kind, "file": file, "sha256": file_digest(file), "prompts": prompts}
    content |= {"sampling": asdict(generators[0].sampling)}
    content |= summary.report(model, generation)
    write_text(report_file, json.dumps(content, indent=2, ensure_ascii=False) + "\n")
    print(summary.table())
    incomplete = summary.lines()
    for line in incomplete[:SHOWN]:
        say(line)
    if len(incomplete) > SHOWN:
        say(f"and {len(incomplete) - SHOWN} more, listed in {report_file}")
    say(f"{summary.items - len(incomplete)} of {summary.items} complete; {model.usage.summary()}")
    return int(bool(incomplete))


def _settings_digest(kind: str, file: str, inputs: InputOptions, generation: GenerationOptions, llm: LLMOptions) -> str:
    """Compute the SHA-256, in hex, of what decides the texts: a run with the same continues an earlier one."""
    names = [f"negatives_{aspect}" for aspect in ASPECTS] if kind == "negatives" else ["views"]
    prompts = [generation.prompt(name).digest for name in names]
    model = [llm.endpoint().model, llm.seed, llm.temperature, llm.max_tokens]
    settings = [kind, file_digest(file), asdict(inputs), {**asdict(generation), "prompts": prompts}, model]
    return sha256(json.dumps(settings).encode()).hexdigest()


def _negatives(
    file: str, model: "LLM", options: GenerationOptions, target: Path
) -> "tuple[GenerationSummary, list[Generator[Any]]]":
    """Write examples with new negatives; return counts, and the generators."""
    from narrlit.llm.generator import CANDIDATES, GenerationSummary, generate_negatives, negative_generators

    examples = read_examples(file)
    say_rows(examples)
    table = StoryTable.of(examples.stories.texts)
    rows, others = [], dict[str, list[str]]()
    for example in examples:  # negatives of an earlier run are replaced
        pairs = zip(example.negatives, example.kinds, strict=True)
        kept = {index: kind for index, kind in pairs if kind not in ASPECTS}
        rows.append(replace(example, negatives=tuple(kept), kinds=tuple(kept.values())))
        texts = [table[index].text for index in (example.positive, *kept)]
        others.setdefault(table[example.anchor].text, []).extend(texts)
    results = dict(zip(others, generate_negatives(model, others, options), strict=True))
    by_row = {f"row {number}": results[table[example.anchor].text] for number, example in enumerate(rows, 1)}
    for number, (example, result) in enumerate(zip(rows, by_row.values(), strict=True)):
        new = [(table.add(text), aspect) for aspect in ASPECTS for text in result.accepted[aspect]]
        negatives = (*example.negatives, *(index for index, _ in new))
        rows[number] = replace(example, negatives=negatives, kinds=(*example.kinds, *(aspect for _, aspect in new)))
    write_examples(target, TrainingExamples(table, rows))
    generators = list(negative_generators(model, options).values())
    return GenerationSummary(by_row, options.candidates or CANDIDATES), generators


def _views(
    read: Stories, model: "LLM", options: GenerationOptions, target: Path
) -> "tuple[GenerationSummary, list[Generator[Any]]]":
    from narrlit.llm.generator import GenerationSummary, generate_views, view_generator

    say(read.report.summary())
    first: dict[str, str] = {}  # one of each story, without regard to case and white space
    for story in read:
        first.setdefault(normal_text(story.text), story.text)
    stories = list(first.values())
    results = generate_views(model, stories, options)
    rows = [
        {"text": text, **views.model_dump()}
        for text, result in zip(stories, results, strict=True)
        for views in result.accepted["views"]
    ]
    if rows:
        write_rows(target, rows)
    else:
        say(f"no views were accepted: {target} is not written")
    by_story = {f"story {number}": result for number, result in enumerate(results, 1)}
    return GenerationSummary(by_story, 1), [view_generator(model, options)]
