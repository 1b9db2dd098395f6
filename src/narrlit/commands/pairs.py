"""narrlit pairs: the most similar stories of a collection, and groups of retellings."""

from pathlib import Path
from typing import Annotated

from narrlit.console import counted, say
from narrlit.explore.pairs import SUFFIXES
from narrlit.files import Output, check_writable
from narrlit.measures.collection import MeasureName
from narrlit.options import InputOptions, ModelOptions, StoryOptions


def pairs(
    collection: str,
    *,
    k: int = 10,
    threshold: float | None = None,
    measure: MeasureName | None = None,
    out: Annotated[str | None, Output("{path}", "{stem}-groups{suffix}")] = None,
    use: ModelOptions,
    read: StoryOptions,
    inputs: InputOptions,
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
        use: the model, where the collection is no index.
        read: what it reads of a story.
        inputs: files of stories.
    """
    if out is not None:
        check_writable(Path(out), *SUFFIXES)
    from narrlit.commands.collections import read_collection
    from narrlit.explore.pairs import pairs as find_pairs

    result = find_pairs(read_collection(collection, use, read, inputs, measure), k, threshold)
    print(result)
    if out is not None:
        files = result.write(out)
        say(f"{', '.join(map(str, files))}: {counted(len(result.frame), 'pair')}")
