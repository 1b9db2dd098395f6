"""narrlit catalog: propose values of a column, such as the tale type, for stories that lack it."""

from typing import Annotated

import narrlit
from narrlit.commands.collections import read_collection
from narrlit.commands.options import ModelOptions, StoryOptions
from narrlit.console import counted, print_result, say
from narrlit.data.rows import Layout
from narrlit.errors import OptionError
from narrlit.files import Output
from narrlit.library.options import FRAME_SUFFIXES
from narrlit.measures.names import MeasureName


def catalog(  # noqa: PLR0913 (options)
    collection: str,
    *,
    column: str,
    k: int = 10,
    measure: MeasureName | None = None,
    json: bool = False,
    out: Annotated[str | None, Output(suffixes=FRAME_SUFFIXES)] = None,
    accepted: str | None = None,
    at_least: float | None = None,
    filled: Annotated[str | None, Output(suffixes=FRAME_SUFFIXES)] = None,
    loading: ModelOptions,
    reading: StoryOptions,
    files: Layout,
) -> None:
    """Propose values of a column, such as the tale type, for stories that lack it, from similar stories that have it.

    Each proposal has a calibrated probability and names the stories that speak for it. The cross-validated accuracy is
    shown first. To accept proposals, write x in the column `accepted` of the table that --out writes, and give the
    table as --accepted.

    Args:
        collection: an index, or stories as `narrlit embed` reads them.
        column: the column.
        k: number of nearest stories that vote.
        measure: measure of similarity: passages, fused, csls, centered, cosine or lexical; default: passages, or csls
            for a model that can't embed single texts.
        json: print one JSON object to stdout, and nothing else.
        out: file to write: a table of the proposals.
        accepted: table of proposals in which the right ones are marked; needs --filled.
        at_least: accept the most probable value of each story if its probability is at least this, from 0 to 1; needs
            --filled.
        filled: file to write: all stories, with the accepted values filled in.
        loading: the model that embeds the stories, if the collection is not an index.
        reading: how the model reads a story: views, pseudonyms, fusion and post-processing.
        files: columns and lines of files of stories.
    """
    if (filled is None) != (accepted is None and at_least is None) or None not in (accepted, at_least):
        raise OptionError("filled_needs")
    chosen = {} if accepted is None else narrlit.read_accepted(accepted)
    result = narrlit.catalog(read_collection(collection, loading, reading, files, measure), column, k=k)
    if at_least is not None:
        chosen = result.probable(at_least)
    print_result(result, json)
    if out is not None:
        result.write(out)
        say(f"{out}: {counted(len(result.proposals), 'story')}; write x in the column accepted")
    if filled is not None:
        complete = result.fill(chosen)
        complete.write(filled)
        say(f"{filled}: {complete}")
