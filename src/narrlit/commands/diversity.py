"""narrlit diversity: how varied the stories of a collection are."""

import json as json_format

from narrlit.errors import OptionError, printable
from narrlit.options import InputOptions, ModelOptions, StoryOptions


def diversity(
    collection: str,
    *,
    cosine: float = 0.9,
    jaccard: float = 0.5,
    json: bool = False,
    use: ModelOptions,
    read: StoryOptions,
    inputs: InputOptions,
) -> None:
    """Print how varied a collection is: Vendi score, similarity of nearest neighbors, near-duplicates.

    Args:
        collection: an index, or stories as `narrlit embed` reads them.
        cosine: similarity from which two stories count as nearly the same.
        jaccard: Jaccard index of three-word shingles from which two texts are near-duplicates.
        json: print one JSON object, and nothing else, to stdout.
        use: the model, where the collection is no index.
        read: what it reads of a story.
        inputs: files of stories.
    """
    if not 0 < jaccard <= 1:
        raise OptionError(f"--jaccard {jaccard}: a number above 0, at most 1, is needed")
    from narrlit.explore import diversity as measures
    from narrlit.explore.collection import load_collection

    result = measures.diversity(load_collection(collection, use, read, inputs), cosine, jaccard)
    if json:
        print(json_format.dumps(result))
        return
    pair = result["most_alike"]
    names = [printable(title or id, 60) for title, id in zip(pair["titles"], pair["ids"], strict=True)]
    print(
        f"Vendi score: {result['vendi_score']:.1f} of {result['stories']:,} stories (by {result['model']})\n"
        f"similarity with the nearest story: {result['mean_nearest_similarity']:.3f} on average\n"
        f"nearly the same story (cosine of {cosine:g} or more): {result['alike']:,} stories\n"
        f"same text: {result['copies']:,}; near-duplicate texts (Jaccard index of {jaccard:g} or more): "
        f"{result['near_duplicates']:,}\n"
        f"most alike: {names[0]} and {names[1]} ({pair['similarity']:.3f})"
    )
