"""narrlit generate: hard negatives or views of stories, written by a language model."""

from typing import Annotated, Literal

import narrlit
from narrlit.commands.options import InputOptions
from narrlit.console import say
from narrlit.files import Output, OutputOptions
from narrlit.llm.options import GenerationOptions, LLMOptions

FILES = ("{path}", "{path}.report.json", "{path}.answers.sqlite")


def generate(
    kind: Literal["negatives", "views"],
    file: str,
    *,
    out: Annotated[str, Output(*FILES, continued=True)],
    output_options: OutputOptions,
    files: InputOptions,
    generation: GenerationOptions,
    llm: LLMOptions,
) -> int:
    """Generate hard negatives of training examples, or views of stories, with a language model.

    A reply that fails a check is requested again and counted by reason; the counts are printed and written to
    OUT.report.json. After an interruption the same command resumes from OUT.answers.sqlite. Exit code 1: some texts are
    missing; the others were written.

    Args:
        kind: negatives (stories like the anchor in theme, action or outcome alone) or views (theme, events, outcome).
        file: training examples or labeled triples for negatives; stories, triples or training examples for views.
        out: file to write (.jsonl).
        output_options: whether texts of other settings are replaced.
        files: how a file of stories is read.
        generation: texts to generate.
        llm: language model.
    """
    result = narrlit.generate(
        kind,
        file,
        llm=llm,
        out=out,
        options=generation,
        layout=files.layout,
        overwrite=output_options.overwrite,
        progress=True,
    )
    print(result)
    if result.incomplete:
        say(result.failures)
    return int(bool(result.incomplete))
