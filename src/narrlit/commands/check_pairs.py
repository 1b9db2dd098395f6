"""narrlit check-pairs: list likely versions of one story for readers, and make data from their decisions."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import narrlit
from narrlit.console import counted, say
from narrlit.files import FRAME_SUFFIXES, Output

if TYPE_CHECKING:
    from narrlit.library.collection import Collection


def check_pairs(
    collection: "Collection",
    *,
    decisions: Sequence[str] = (),
    k: int = 10,
    limit: int | None = None,
    out: Annotated[str | None, Output(suffixes=FRAME_SUFFIXES)] = None,
    groups: Annotated[str | None, Output(suffixes=FRAME_SUFFIXES)] = None,
    triples: Annotated[str | None, Output(suffixes=FRAME_SUFFIXES)] = None,
) -> None:
    """List likely versions of one story for readers to decide, and make training and test data from their decisions.

    Fill in the column `decision` of the table that --out writes: same, different or unsure. Then give the table as
    --decisions.

    Args:
        collection: the stories.
        decisions: table of pairs with their decisions, or several, comma-separated, one for each reader; their pairs
            are not listed again.
        k: number of nearest neighbors with which each story is paired.
        limit: largest number of pairs; default: all.
        out: file to write: a table of the pairs to check, with their texts.
        groups: file to write: all stories with the column version_of, which is the same for versions of one story, for
            `narrlit fit` and `narrlit retrieval`.
        triples: file to write: labeled triples, for `narrlit evaluate` and `narrlit fit`.
    """
    made = narrlit.read_decisions(decisions)
    pairs = narrlit.pairs_to_check(collection, made, k=k, limit=limit)
    labeled = narrlit.label_pairs(collection, made)
    print(pairs)
    if made:
        print(f"{labeled}\n{narrlit.reader_agreement(made)}")
    if out is not None:
        pairs.write(out)
        say(f"{out}: {counted(len(pairs), 'pair')}; write same, different or unsure in the column decision")
    if groups is not None:
        labeled.write_groups(groups)
        say(f"{groups}: {counted(len(labeled.versions), 'group')} in the column version_of")
    if triples is not None:
        labeled.write_triples(triples)
        say(f"{triples}: {counted(len(labeled.triples()), 'triple')}")
