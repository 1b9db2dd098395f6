"""narrlit generate: generate hard negatives or views of stories with a language model."""

from typing import Annotated, Literal

import narrlit
from narrlit.console import say
from narrlit.data.rows import Layout
from narrlit.files import Output, OutputOptions
from narrlit.llm.options import GenerationOptions, LLMOptions

FILES = ("{path}", "{path}.report.json", "{path}.answers.sqlite")


def generate(
    kind: Literal["negatives", "views"],
    file: str,
    *,
    out: Annotated[str, Output(*FILES, continued=True)],
    output_options: OutputOptions,
    files: Layout,
    generation: GenerationOptions,
    llm: LLMOptions,
) -> int:
    """Generate hard negatives of training examples, or views of stories, with a language model.

    Invalid replies are retried and counted by reason; the counts are printed and written to OUT.report.json. Repeat the
    command to resume: replies are kept in OUT.answers.sqlite. The exit code is 1 if some texts are missing; all others
    are written.

    Args:
        kind: negatives (stories that share only the theme, the action or the outcome of the anchor) or views (theme,
            events, outcome).
        file: for negatives, training examples or labeled triples; for views, stories, triples or training examples.
        out: file to write (.jsonl).
        output_options: option to overwrite texts generated with other settings.
        files: how a file of stories is read.
        generation: what to generate.
        llm: the language model.
    """
    result = narrlit.generate(
        kind,
        file,
        llm=llm,
        out=out,
        options=generation,
        layout=files,
        overwrite=output_options.overwrite,
        progress=True,
    )
    print(result)
    if result.incomplete:
        say(result.failures)
    return int(bool(result.incomplete))
