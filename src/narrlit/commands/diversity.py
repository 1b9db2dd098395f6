"""narrlit diversity: how varied the stories of a collection are."""

import narrlit
from narrlit.commands.collections import read_collection
from narrlit.commands.options import InputOptions, ModelOptions, StoryOptions
from narrlit.console import print_result


def diversity(
    collection: str,
    *,
    cosine: float = 0.9,
    jaccard: float = 0.5,
    json: bool = False,
    loading: ModelOptions,
    reading: StoryOptions,
    files: InputOptions,
) -> None:
    """Print how varied a collection is: Vendi score, similarity of nearest neighbors, near-duplicates.

    Args:
        collection: an index, or stories as `narrlit embed` reads them.
        cosine: similarity from which two stories count as nearly the same.
        jaccard: Jaccard index of three-word shingles from which two texts are near-duplicates.
        json: print one JSON object, and nothing else, to stdout.
        loading: the model, where the collection is no index.
        reading: what it reads of a story.
        files: files of stories.
    """
    print_result(narrlit.diversity(read_collection(collection, loading, reading, files), cosine, jaccard), json)
