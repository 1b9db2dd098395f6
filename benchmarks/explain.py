"""Faithfulness of `narrlit explain`: do similarities rest on the passages whose shares are the largest?

A tenth to a half of the passages is left out of both stories, those with the largest shares first or random ones, and
what remains is compared: by the passages' score, and by the cosine of the whole texts, which has no part in the shares.
The pairs are the sample tales of one tale type, or anchor and closer story of labeled triples.
"""

import argparse
import itertools
import json
import os
import tempfile

os.environ["HF_HUB_OFFLINE"] = "1"

import numpy as np
import pandas as pd

from narrlit import explain, load, read_triples
from narrlit.data.tales import sample_tales
from narrlit.statistics.estimates import difference


def tale_pairs() -> list[tuple[str, str]]:
    """Pair the sample tales of each type."""
    pairs = []
    for one, other in itertools.combinations(sample_tales(), 2):
        if one["atu"] == other["atu"]:
            pairs.append((one["text"], other["text"]))
    return pairs


def closer_pairs(path: str, count: int) -> list[tuple[str, str]]:
    """Pair the anchors of the first triples of a file with the stories that are closer."""
    triples = read_triples(path)
    pairs = []
    for (anchor, a, b), label in zip(triples.texts()[:count], triples.labels[:count], strict=True):
        pairs.append((anchor, a if label == 1 else b))
    return pairs


def curves(pairs: list[tuple[str, str]], model: str, cache: str) -> pd.DataFrame:
    """Leave passages out of each pair."""
    tables = []
    encoder = load(model, cache=cache)
    for number, (one, other) in enumerate(pairs):
        deletion = explain(one, other, encoder=encoder, check=True).pair.deletion
        if deletion is not None:
            tables.append(deletion.table().assign(pair=number))
    return pd.concat(tables)


def summary(table: pd.DataFrame) -> dict[str, dict[str, float]]:
    """Average the curves over the pairs, and count the pairs in which named passages matter more than random ones."""
    results: dict[str, dict[str, float]] = {}
    for removed, rows in table.groupby("removed"):
        figures = rows[["score", "score_random", "cosine", "cosine_random"]].mean().to_dict()
        for name in ("score", "cosine"):
            named, random = rows[name].to_numpy(), rows[f"{name}_random"].to_numpy()
            figures[f"{name}_lower"] = float(np.mean(named < random))
            figures[f"{name}_p"] = difference(random, named).p
        results[f"{100 * float(str(removed)):.0f}"] = figures
    return results


def main() -> None:
    """Measure and print."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--triples", help="file of labeled triples; by default the sample tales")
    options.add_argument("--pairs", type=int, default=50, help="of the triples")
    options.add_argument("--model", default="minilm")
    options.add_argument("--json", action="store_true", help="print one line of JSON")
    chosen = options.parse_args()
    pairs = tale_pairs() if chosen.triples is None else closer_pairs(chosen.triples, chosen.pairs)
    with tempfile.TemporaryDirectory() as cache:
        results = summary(curves(pairs, chosen.model, cache))
    if chosen.json:
        print(json.dumps({"pairs": len(pairs), "removed": results}))
        return
    print(f"{len(pairs)} pairs, {chosen.model}")
    print(pd.DataFrame(results).T.round(3).to_string())


if __name__ == "__main__":
    main()
