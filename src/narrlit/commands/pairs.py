"""narrlit pairs: the most similar stories of a collection, and groups of retellings."""

from typing import Annotated

import narrlit
from narrlit.commands.collections import read_collection
from narrlit.commands.options import InputOptions, ModelOptions, StoryOptions
from narrlit.console import counted, say
from narrlit.explore.options import PAIR_SUFFIXES
from narrlit.files import Output
from narrlit.metrics.names import MeasureName


def pairs(
    collection: str,
    *,
    k: int = 10,
    threshold: float | None = None,
    measure: MeasureName | None = None,
    out: Annotated[str | None, Output("{path}", "{stem}-groups{suffix}", suffixes=PAIR_SUFFIXES)] = None,
    loading: ModelOptions,
    reading: StoryOptions,
    files: InputOptions,
) -> None:
    """Print the most similar pairs of a collection, and groups of retellings: mutual neighbors above a threshold.

    Args:
        collection: an index, or stories as `narrlit embed` reads them.
        k: nearest neighbors of each story that it is paired with.
        threshold: similarity above which mutual neighbors are retellings; by default chosen from the similarities of
            all pairs, and explained.
        measure: by which stories are compared: passages, fused, csls, centered, cosine or lexical; by default passages,
            or csls for a model that can't embed a single text.
        out: file of the pairs (.csv, .tsv, .xlsx, .jsonl, .parquet), with NAME-groups beside it; or a graph (.graphml).
        loading: the model, where the collection is no index.
        reading: what it reads of a story.
        files: files of stories.
    """
    result = narrlit.pairs(read_collection(collection, loading, reading, files, measure), k, threshold)
    print(result)
    if out is not None:
        written = result.write(out)
        say(f"{', '.join(map(str, written))}: {counted(len(result.frame), 'pair')}")
