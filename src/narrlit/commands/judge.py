"""narrlit judge: let a language model decide which candidate is closer, given an encoder's similarities."""

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

    If a reply contains no choice, the similarities decide. The report is written to OUT.report.json and OUT.report.md,
    each answer to OUT.rows.jsonl. Repeat the command to resume: replies are kept in OUT.answers.sqlite. Views and
    pseudonyms apply to the similarities only; the language model reads the stories as they are in the file. The exit
    code is 1 if some requests failed.

    Args:
        triples: JSON Lines or CSV of triples, with or without labels.
        model: encoder that computes the similarities: a folder, a run, a checkpoint, a hub id, narrlit-mini or minilm.
        out: file of Track A answers (.jsonl) or submission (.zip) to write.
        output_options: option to overwrite answers with other settings.
        loading: how the model is loaded.
        reading: how the encoder reads a story: views, pseudonyms, fusion and post-processing.
        llm: the language model.
        labels: file with the labels (text_a_is_closer), if they are not in the file of triples.
        swap: judge each triple twice, with A and B swapped; a choice counts only if both replies choose the same story.
        prompt: file with a custom prompt: the user message if it has fields such as {anchor_text}, else the system
            message.
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
        say(f"{result.failures}; repeat the command to retry them")
    return int(bool(result.failed))
