"""Faithfulness of `narrlit explain`: are the sentences that it names those that a cosine rests on?

For each pair (anchor, closer candidate) sentences of one story are deleted, or all others are (kept), and the cosine
with the other, whole story is measured; both stories take their turn. A ranking is faithful if deleting its first k
sentences lowers the cosine more than deleting k random ones, and keeping them lowers it less. With k = 1, deleting the
first one of leave one out is the largest drop by construction: only the other figures test it. Those of another model
(--judge) test whether the sentences named matter beyond the model that named them.
"""

import argparse
import os

os.environ["HF_HUB_OFFLINE"] = "1"
import numpy as np
from numpy.typing import NDArray

from narrlit import load_encoder
from narrlit.data.readers import read_triples
from narrlit.data.tales import sample_tales
from narrlit.explore.explanation import chance_levels, free_passages, leave_out, split_passages
from narrlit.metrics.significance import p_text, permutation_test
from narrlit.models.embedding import embed
from narrlit.models.encoder import Encoder

Floats = NDArray[np.float64]
SIZES = (1, 2, 3)


def vectors(encoder: Encoder, texts: list[str]) -> Floats:
    """Unit vectors of texts."""
    found = embed(encoder, texts, progress=False).embeddings.astype(np.float64)
    unit: Floats = found / np.linalg.norm(found, axis=1, keepdims=True)
    return unit


def rankings(encoder: Encoder, story: list[str], other: list[str], pieces: Floats) -> dict[str, Floats]:
    """Weights (S,) of a story's sentences by several ways to name the strongest."""
    left = [leave_out(story, [i]) for i in range(len(story))]
    whole, joined, *without = vectors(encoder, [" ".join(other), " ".join(story), *left])
    own, theirs = vectors(encoder, story), vectors(encoder, other)
    linked = np.zeros(len(story))
    for i, _, strength in free_passages(own, theirs, chance_levels(own, theirs, pieces)):
        linked[i] = strength
    drops = joined @ whole - np.array(without) @ whole
    return {
        "leave one out": drops,
        "linked, then leave one out": linked * 1e3 + drops,
        "best answer's cosine": (own @ theirs.T).max(axis=1),
        "cosine with the other story": own @ whole,
        "longest": np.array([float(len(sentence)) for sentence in story]),
    }


def main() -> None:
    """Measure and print."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("triples", help="file of labeled triples")
    options.add_argument("--model", default="minilm", help="names the sentences")
    options.add_argument("--judge", help="measures the cosines; by default the same model")
    options.add_argument("--pairs", type=int, default=100)
    options.add_argument("--draws", type=int, default=20, help="random choices that a ranking is compared with")
    chosen = options.parse_args()
    encoder = load_encoder(chosen.model)
    judge = encoder if chosen.judge is None else load_encoder(chosen.judge)
    triples = read_triples(chosen.triples)
    pieces = vectors(encoder, [sentence for tale in sample_tales() for sentence in split_passages(tale["text"])])
    rng = np.random.default_rng(0)
    losses: dict[tuple[str, str, int], list[float]] = {}
    rows = range(min(chosen.pairs, len(triples)))
    for row in rows:
        anchor, a, b = triples.texts()[row]
        texts = [split_passages(text) for text in (anchor, a if triples.labels[row] == 1 else b)]
        drops: dict[tuple[str, str, int], list[float]] = {}
        for story, other in (texts, texts[::-1]):
            orders = {
                name: np.argsort(-w, kind="stable") for name, w in rankings(encoder, story, other, pieces).items()
            }
            for k in (k for k in SIZES if k < len(story)):
                draws = [rng.permutation(len(story)) for _ in range(chosen.draws)]
                named = [*((name, order) for name, order in orders.items()), *(("random", order) for order in draws)]
                deleted = [leave_out(story, order[:k].tolist()) for _, order in named]
                kept = [leave_out(story, order[k:].tolist()) for _, order in named]
                whole, joined, *found = vectors(judge, [" ".join(other), " ".join(story), *deleted, *kept])
                loss = (joined - np.array(found)) @ whole
                for (name, _), deletion, keeping in zip(named, *np.split(loss, 2), strict=True):
                    drops.setdefault((name, "deleted", k), []).append(deletion)
                    drops.setdefault((name, "kept", k), []).append(keeping)
        for key, values in drops.items():
            losses.setdefault(key, [float("nan")] * len(rows))[row] = float(np.mean(values))
    print(f"{len(rows)} pairs; sentences named by {chosen.model}, cosines of {chosen.judge or chosen.model}")
    print(f"{'':7} {'k':>2} {'ranking':28} {'drop':>7} {'random':>7} {'better':>7}  p (paired, n)")
    for name, action, k in sorted(losses, key=lambda key: (key[1], key[2])):
        mine, random = np.array(losses[name, action, k]), np.array(losses["random", action, k])
        there = ~np.isnan(mine)
        mine, random = mine[there], random[there]
        better = np.mean(mine > random if action == "deleted" else mine < random)
        test = f"{p_text(permutation_test(mine, random))}, n = {there.sum()}" if name != "random" else ""
        print(f"{action:7} {k:2} {name:28} {mine.mean():7.3f} {random.mean():7.3f} {better:7.2f}  {test}")


if __name__ == "__main__":
    main()
