"""narrlit judge: a language model decides which candidate is closer, given an encoder's similarities."""

from typing import Annotated

import narrlit
from narrlit.commands.options import LoadOptions, StoryOptions
from narrlit.console import say
from narrlit.files import Output, OutputOptions
from narrlit.llm.options import LLMOptions

FILES = ("{path}", "{path}.report.json", "{path}.report.md", "{path}.rows.jsonl", "{path}.answers.sqlite")


def judge(  # noqa: PLR0913 (options)
    triples: str,
    *,
    model: str,
    out: Annotated[str, Output(*FILES, continued=True)],
    output_options: OutputOptions,
    loading: LoadOptions,
    reading: StoryOptions,
    llm: LLMOptions,
    labels: str | None = None,
    swap: bool = False,
    prompt: str | None = None,
) -> int:
    """Let a language model decide each triple, given the stories and an encoder's similarities.

    A reply without a choice falls back to the similarities. OUT.report.json and OUT.report.md hold the figures,
    OUT.rows.jsonl every answer. After an interruption the same command resumes from OUT.answers.sqlite. Views and
    pseudonyms apply to the similarities; the language model reads the stories as they are in the file. Exit code 1:
    some requests failed.

    Args:
        triples: triples (JSON Lines or CSV), with or without labels.
        model: encoder of the similarities: a folder, a run folder, a checkpoint, a hub id, narrlit-mini or minilm.
        out: Track A answers (.jsonl), or a submission (.zip).
        output_options: whether answers of other settings are replaced.
        loading: how the model is loaded.
        reading: what it reads of a story.
        llm: language model.
        labels: file of text_a_is_closer, if the labels are not in the file of triples.
        swap: judge twice, with A and B swapped; a choice counts only if it is the same story both times.
        prompt: file of another prompt: the system message or, with fields such as {anchor_text}, the user message.
    """
    result = narrlit.judge(
        triples,
        reading.load(model, loading),
        llm=llm,
        out=out,
        labels=labels,
        swap=swap,
        prompt=prompt,
        overwrite=output_options.overwrite,
        progress=True,
    )
    print(result)
    if result.failed:
        say(f"{result.failures}; the same command asks again")
    return int(bool(result.failed))
