"""narrlit diversity: measure how varied the stories of a collection are."""

import narrlit
from narrlit.commands.collections import read_collection
from narrlit.commands.options import ModelOptions, StoryOptions
from narrlit.console import print_result
from narrlit.data.rows import Layout


def diversity(
    collection: str,
    *,
    cosine: float = 0.9,
    jaccard: float = 0.5,
    json: bool = False,
    loading: ModelOptions,
    reading: StoryOptions,
    files: Layout,
) -> None:
    """Measure how varied a collection is: Vendi score, similarity of nearest neighbors, near-duplicates.

    Args:
        collection: an index, or stories as `narrlit embed` reads them.
        cosine: cosine similarity at or above which two stories count as nearly the same.
        jaccard: Jaccard index of three-word shingles at or above which two texts count as near-duplicates.
        json: print one JSON object to stdout, and nothing else.
        loading: the model that embeds the stories, if the collection is not an index.
        reading: how the model reads a story: views, pseudonyms, fusion and post-processing.
        files: columns and lines of files of stories.
    """
    print_result(narrlit.diversity(read_collection(collection, loading, reading, files), cosine, jaccard), json)
