"""narrlit pairs: find the most similar stories of a collection, and groups of retellings."""

from typing import Annotated

import narrlit
from narrlit.commands.collections import read_collection
from narrlit.commands.options import ModelOptions, StoryOptions
from narrlit.console import counted, say
from narrlit.data.rows import Layout
from narrlit.files import Output
from narrlit.library.options import PAIR_SUFFIXES
from narrlit.measures.names import MeasureName


def pairs(
    collection: str,
    *,
    k: int = 10,
    threshold: float | None = None,
    measure: MeasureName | None = None,
    out: Annotated[str | None, Output("{path}", "{stem}-groups{suffix}", suffixes=PAIR_SUFFIXES)] = None,
    loading: ModelOptions,
    reading: StoryOptions,
    files: Layout,
) -> None:
    """Find the most similar pairs of a collection, and groups of retellings: mutual neighbors above a threshold.

    Args:
        collection: an index, or stories as `narrlit embed` reads them.
        k: number of nearest neighbors with which each story is paired.
        threshold: similarity above which mutual neighbors count as retellings; default: chosen from the similarities of
            all pairs, with an explanation.
        measure: measure of similarity; default: passages, or csls for a model that can't embed passages.
        out: file to write: a table of the pairs (.csv, .tsv, .xlsx, .jsonl, .parquet), with the groups in NAME-groups
            next to it, or a graph (.graphml).
        loading: the model that embeds the stories, if the collection is not an index.
        reading: how the model reads a story: views, pseudonyms, fusion and post-processing.
        files: columns and lines of files of stories.
    """
    result = narrlit.pairs(read_collection(collection, loading, reading, files, measure), k, threshold)
    print(result)
    if out is not None:
        written = result.write(out)
        say(f"{', '.join(map(str, written))}: {counted(len(result.frame), 'pair')}")
