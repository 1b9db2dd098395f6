"""narrlit catalog: propose values of a column, such as the tale type, for stories that lack it."""

from typing import TYPE_CHECKING, Annotated

import narrlit
from narrlit.console import counted, print_result, say
from narrlit.errors import OptionError
from narrlit.files import FRAME_SUFFIXES, Output

if TYPE_CHECKING:
    from narrlit.library.collection import Collection


def catalog(
    collection: "Collection",
    *,
    column: str,
    k: int = 10,
    json: bool = False,
    out: Annotated[str | None, Output(suffixes=FRAME_SUFFIXES)] = None,
    accepted: str | None = None,
    at_least: float | None = None,
    filled: Annotated[str | None, Output(suffixes=FRAME_SUFFIXES)] = None,
) -> None:
    """Propose values of a column, such as the tale type, for stories that lack it, from similar stories that have it.

    Each proposal has a calibrated probability and names the stories that speak for it. The cross-validated accuracy is
    shown first. To accept proposals, write x in the column `accepted` of the table that --out writes, and give the
    table as --accepted.

    Args:
        collection: the stories.
        column: the column.
        k: number of nearest stories that vote.
        json: print one JSON object to stdout, and nothing else.
        out: file to write: a table of the proposals.
        accepted: table of proposals in which the right ones are marked; needs --filled.
        at_least: accept the most probable value of each story if its probability is at least this, from 0 to 1; needs
            --filled.
        filled: file to write: all stories, with the accepted values filled in.
    """
    if (filled is None) != (accepted is None and at_least is None) or None not in (accepted, at_least):
        raise OptionError("filled_needs")
    chosen = {} if accepted is None else narrlit.read_accepted(accepted)
    result = narrlit.catalog(collection, column, k=k)
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
