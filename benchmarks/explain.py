"""Faithfulness of `narrlit explain`: are the sentences that it names those that a cosine rests on?

For each pair (anchor, closer candidate) sentences of one story are deleted, or all others are (kept), and the cosine
with the other, whole story is measured; both stories take their turn. A ranking is faithful if deleting its first k
sentences lowers the cosine more than deleting k random ones, and keeping them lowers it less. With k = 1, deleting the
first one of leave one out is the largest drop by construction: only the other figures test it. Those of another model
(--judge) test whether the sentences named matter beyond the model that named them.
"""

import argparse
import json
import os
from collections.abc import Mapping

os.environ["HF_HUB_OFFLINE"] = "1"
import numpy as np
from numpy.typing import NDArray

from narrlit.data.readers import read_triples
from narrlit.data.tales import sample_tales
from narrlit.explore.explanation import chance_levels, free_passages, leave_out, split_passages
from narrlit.metrics.significance import p_text, permutation_test
from narrlit.models.embedding import embed
from narrlit.models.encoder import Encoder
from narrlit.models.registry import load_encoder

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
    options.add_argument("--json", action="store_true", help="print one line of JSON")
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
    results = compared(losses)
    if chosen.json:
        print(json.dumps({"pairs": len(rows), **results}))
        return
    print(f"{len(rows)} pairs; sentences named by {chosen.model}, cosines of {chosen.judge or chosen.model}")
    print(f"{'':12} {'ranking':28} {'drop':>7} {'random':>7} {'better':>7}  p (paired, n)")
    for sentences, rankings_of in results.items():
        for name, result in rankings_of.items():
            test = f"{p_text(result['p'])}, n = {result['n']}"
            figures = f"{result['drop']:7.3f} {result['random']:7.3f} {result['better']:7.2f}"
            print(f"{sentences:12} {name:28} {figures}  {test}")


def compared(losses: Mapping[tuple[str, str, int], list[float]]) -> dict[str, dict[str, dict[str, float]]]:
    """Compare each ranking's losses with those of random sentences, over the pairs that have so many sentences.

    Args:
        losses: what the cosine loses, by ranking, what is done to its first sentences and their number; one for each
            pair of stories, NaN where a story is too short.

    Returns:
        By `deleted 1` and the like, and by ranking: mean loss, that of random sentences, the share of pairs in which
        the ranking is better, and n and p of the paired permutation test.
    """
    results: dict[str, dict[str, dict[str, float]]] = {}
    for name, action, k in sorted(losses, key=lambda key: (key[1], key[2])):
        if name == "random":
            continue
        mine, random = np.array(losses[name, action, k]), np.array(losses["random", action, k])
        known = ~np.isnan(mine)
        mine, random = mine[known], random[known]
        better = np.mean(mine > random if action == "deleted" else mine < random)
        results.setdefault(f"{action} {k}", {})[name] = {
            "drop": float(mine.mean()),
            "random": float(random.mean()),
            "better": float(better),
            "n": int(known.sum()),
            "p": permutation_test(mine, random),
        }
    return results


if __name__ == "__main__":
    main()
