"""What narrlit-mini is chosen by: development triples, plots that no training has seen, the 24 tales, and sentences.

    python benchmarks/model_choice.py --triples dev_track_a.jsonl MODEL [MODEL ...]

Prints a JSON object a model: `dev`, accuracy on the labeled triples; `strong` and `weak`, the share of all triples of
Twice Told's validation plots, told in all eight worlds, whose positive is nearer than a negative that shares the
anchor's world, or does not; `plot_lines`, how well the line that sums up a validation plot finds its tellings among
all 384 stories, and `unseen_plot_lines`, the same for the test plots, which chose nothing, as well; `tales`, recall@1
and mean reciprocal rank of tales of the same type by two measures; `tale_sentences`, how well a sentence for each of
the eight types finds a tale of it in an index.
"""

import argparse
import json
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import narrlit
from narrlit.data.twice_told import Split
from narrlit.encoding.story_encoder import StoryEncoder
from narrlit.measures.names import MeasureName

MEASURES: tuple[MeasureName, ...] = ("passages", "cosine")
Floats = NDArray[np.float64]

TALE_SENTENCES = {
    "155": "A freed beast wants to eat its rescuer, and is tricked back into the trap.",
    "275C": "A slow animal beats a fast one in a race because its look-alike relatives stand along the track.",
    "333": "A girl finds a beast in her grandmother's bed.",
    "400": "A man hides a bird woman's garment and marries her; she finds it and flies away.",
    "425": "A girl marries a man whom she may not see, looks at him by light, loses him and seeks him again.",
    "500": "A woman must guess a helper's secret name, and someone overhears it in time.",
    "510A": "A mistreated girl loses her shoe at a feast, and the ruler finds her by it.",
    "780": "A murdered sibling's bones become an instrument that sings who the killer was.",
}
"""What happens in each type of the 24 tales, as someone would search for it."""


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


def ranking_figures(ranks: Sequence[int]) -> dict[str, float]:
    """Compute recall@1 and mean reciprocal rank of the first relevant story's ranks, counted from 1."""
    counted = np.array(ranks)
    return {"recall@1": float((counted == 1).mean()), "mrr": float((1 / counted).mean())}


def plot_lines(encoder: StoryEncoder, *parts: Split) -> dict[str, float]:
    """Search all stories of the factorial design for each plot of these parts, by its action and outcome."""
    corpus = narrlit.TwiceTold.read()
    plots = [plot for part in parts for plot in corpus.split(part).plots]
    lines = encoder.embed([f"{plot.action} {plot.outcome}" for plot in plots])
    stories = encoder.embed([telling.text for telling in corpus.tellings])
    plot_of_story = np.array([telling.plot for telling in corpus.tellings])
    ranks = []
    for plot, similarities in zip(plots, lines @ stories.T, strict=True):
        ranking = plot_of_story[np.argsort(-similarities)]
        ranks.append(int(np.argmax(ranking == plot.plot)) + 1)
    return ranking_figures(ranks)


def tale_sentences(encoder: StoryEncoder) -> dict[str, float]:
    """Search an index of the 24 tales for a tale of each type, by a sentence."""
    with tempfile.TemporaryDirectory() as folder:
        narrlit.write_tales(Path(folder) / "tales")
        tales = narrlit.read_stories(str(Path(folder) / "tales"))
        index = narrlit.Index.create(Path(folder) / "tales.index", tales, encoder=encoder)
        ranks = []
        for tale_type, sentence in TALE_SENTENCES.items():
            types = index.search(sentence, k=len(tales)).table()["atu"].tolist()
            ranks.append(types.index(tale_type) + 1)
    return ranking_figures(ranks)


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
        found[measure] = ranking_figures(ranks.tolist())
    return found


def main() -> None:
    """Evaluate each model."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--triples", required=True)
    options = parser.parse_args()
    for model in options.models:
        encoder = narrlit.load(model)
        accuracy = float(narrlit.evaluate(options.triples, encoder).estimate().value)
        result = {
            "model": model,
            "dev": accuracy,
            **unseen_plots(encoder),
            "plot_lines": plot_lines(encoder, "validation"),
            "unseen_plot_lines": plot_lines(encoder, "validation", "test"),
            "tales": tales(encoder),
            "tale_sentences": tale_sentences(encoder),
        }
        print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
