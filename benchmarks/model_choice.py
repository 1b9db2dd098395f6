"""What narrlit-mini is chosen by: development triples, plots that no training has seen, and the 24 tales.

    python benchmarks/model_choice.py --triples dev_track_a.jsonl MODEL [MODEL ...]

Prints a JSON object a model: `dev`, accuracy on the labeled triples; `strong` and `weak`, the share of all triples of
Twice Told's validation plots, told in all eight worlds, whose positive is nearer than a negative that shares the
anchor's world, or does not; `tales`, recall@1 and mean reciprocal rank of tales of the same type by two measures.
"""

import argparse
import json
import tempfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import narrlit
from narrlit.encoding.story_encoder import StoryEncoder
from narrlit.measures.collection import MeasureName

MEASURES: tuple[MeasureName, ...] = ("passages", "cosine")
Floats = NDArray[np.float64]


def share_of_triples(similarities: Floats, plots: NDArray[np.str_], worlds: NDArray[np.str_], strong: bool) -> float:
    """Compute the share of triples (anchor, same plot in another world, other plot) in which the plot is nearer.

    Args:
        similarities: (N, N) of the stories.
        plots: (N,) of each story.
        worlds: (N,) of each story.
        strong: the negative shares the anchor's world, else it does not.
    """
    right: list[Floats] = []
    for row in range(len(plots)):
        elsewhere = worlds != worlds[row]
        positives = similarities[row, (plots == plots[row]) & elsewhere]
        negatives = similarities[row, (plots != plots[row]) & (~elsewhere if strong else elsewhere)]
        right.append((positives[:, None] > negatives).ravel().astype(float))
    return float(np.concatenate(right).mean())


def unseen_plots(encoder: StoryEncoder) -> dict[str, float]:
    """Evaluate triples of the validation plots, which never train, in all worlds."""
    corpus = narrlit.TwiceTold.read()
    names = {plot.plot for plot in corpus.split("validation").plots}
    tellings = [telling for telling in corpus.tellings if telling.plot in names]
    vectors = encoder.embed([telling.text for telling in tellings])
    similarities = (vectors @ vectors.T).astype(np.float64)
    plots = np.array([telling.plot for telling in tellings])
    worlds = np.array([telling.world for telling in tellings])
    return {
        "strong": share_of_triples(similarities, plots, worlds, strong=True),
        "weak": share_of_triples(similarities, plots, worlds, strong=False),
    }


def tales(encoder: StoryEncoder) -> dict[str, dict[str, float]]:
    """Rank the tales of the same type among the 24 that come with narrlit, by each measure."""
    with tempfile.TemporaryDirectory() as folder:
        narrlit.write_tales(Path(folder) / "tales")
        collection = narrlit.Collection.read(str(Path(folder) / "tales"), encoder)
    types = collection.frame["atu"].to_numpy()
    found: dict[str, dict[str, float]] = {}
    for measure in MEASURES:
        similarities = np.array(collection.similarities_by(measure).matrix(), dtype=np.float64)
        np.fill_diagonal(similarities, -np.inf)
        order = np.argsort(-similarities, axis=1)[:, :-1]
        ranks = np.argmax(types[order] == types[:, None], axis=1) + 1
        found[measure] = {"recall@1": float((ranks == 1).mean()), "mrr": float((1 / ranks).mean())}
    return found


def main() -> None:
    """Evaluate each model."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--triples", required=True)
    options = parser.parse_args()
    for model in options.models:
        encoder = narrlit.load(model)
        accuracy = narrlit.evaluate(options.triples, encoder).accuracy
        result = {"model": model, "dev": accuracy, **unseen_plots(encoder), "tales": tales(encoder)}
        print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
