"""narrlit check-pairs: list likely versions of one story for readers, and make data from their decisions."""

from typing import Annotated

import narrlit
from narrlit.commands.collections import read_collection
from narrlit.commands.options import ModelOptions, StoryOptions, listed
from narrlit.console import counted, say
from narrlit.data.rows import Layout
from narrlit.files import Output
from narrlit.library.options import FRAME_SUFFIXES
from narrlit.measures.names import MeasureName


def check_pairs(  # noqa: PLR0913 (options)
    collection: str,
    *,
    decisions: str | None = None,
    k: int = 10,
    limit: int | None = None,
    measure: MeasureName | None = None,
    out: Annotated[str | None, Output(suffixes=FRAME_SUFFIXES)] = None,
    groups: Annotated[str | None, Output(suffixes=FRAME_SUFFIXES)] = None,
    triples: Annotated[str | None, Output(suffixes=FRAME_SUFFIXES)] = None,
    loading: ModelOptions,
    reading: StoryOptions,
    files: Layout,
) -> None:
    """List likely versions of one story for readers to decide, and make training and test data from their decisions.

    Fill in the column `decision` of the table that --out writes: same, different or unsure. Then give the table as
    --decisions.

    Args:
        collection: an index, or stories as `narrlit embed` reads them.
        decisions: table of pairs with their decisions, or several, comma-separated, one for each reader; their pairs
            are not listed again.
        k: number of nearest neighbors with which each story is paired.
        limit: largest number of pairs; default: all.
        measure: measure of similarity: passages, fused, csls, centered, cosine or lexical; default: passages, or csls
            for a model that can't embed single texts.
        out: file to write: a table of the pairs to check, with their texts.
        groups: file to write: all stories with the column version_of, which is the same for versions of one story, for
            `narrlit fit` and `narrlit retrieval`.
        triples: file to write: labeled triples, for `narrlit evaluate` and `narrlit fit`.
        loading: the model that embeds the stories, if the collection is not an index.
        reading: how the model reads a story: views, pseudonyms, fusion and post-processing.
        files: columns and lines of files of stories.
    """
    made = narrlit.read_decisions(listed(decisions))
    stories = read_collection(collection, loading, reading, files, measure)
    pairs = narrlit.pairs_to_check(stories, made, k=k, limit=limit)
    labeled = narrlit.label_pairs(stories, made)
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
