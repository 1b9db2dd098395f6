"""Small studies behind what README and docs state: each prints one line of JSON.

python benchmarks/studies.py tales --mpnet all-mpnet-base-v2
python benchmarks/studies.py postprocessing --data narrative-similarity-dataset
python benchmarks/studies.py windows --data narrative-similarity-dataset
python benchmarks/studies.py retellings --data narrative-similarity-dataset
python benchmarks/studies.py view_anchors --data narrative-similarity-dataset
python benchmarks/studies.py split_types --data narrative-similarity-dataset
"""

import argparse
import json
import random
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from twins import twins

from narrlit.data.readers import read_triples
from narrlit.data.schema import normal_text, triple_cosines
from narrlit.data.splits import story_numbers
from narrlit.data.tales import sample_tales
from narrlit.encoding.loading import load
from narrlit.models.affine_steps import fit_steps
from narrlit.models.config import parse_steps
from narrlit.models.embedding import embed_stories
from narrlit.models.encoder import Encoder
from narrlit.models.registry import load_encoder
from narrlit.statistics.estimates import difference, estimate
from narrlit.statistics.significance import SharedStories

Floats = NDArray[np.float64]
Result = dict[str, Any]

STEPS = ("center", "abtt:1", "abtt:3", "whiten")
SYNTHETIC = "synthetic/synthetic_data_for_classification_830of1900.jsonl"
TELL_ME_AGAIN = "extra/tell_me_again_triplets.jsonl"
VIEWS = "views/story_views_llama.jsonl"


def unit_vectors(encoder: Encoder, texts: Sequence[str]) -> Floats:
    """Embed texts: unit vectors (N, D)."""
    vectors = embed_stories(encoder, list(texts)).embeddings.astype(np.float64)
    unit: Floats = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return unit


def tales(chosen: argparse.Namespace) -> Result:
    """Count the sample tales whose nearest tale, or one of the three nearest, has the same type."""
    from narrlit.library.collection import Collection
    from narrlit.measures.names import MEASURES
    from narrlit.statistics.words import WEIGHTED, lexical_vectors

    rows = sample_tales()
    texts, types = [row["text"] for row in rows], np.array([row["atu"] for row in rows])
    counts: Result = {}
    for kind in WEIGHTED:
        queries, stories = lexical_vectors(kind, texts, texts)
        counts[kind] = same_type((queries @ stories.T).toarray(), types)
    for name, model in {"minilm": "minilm", "mpnet": chosen.mpnet}.items():
        collection = Collection.of(texts, model)
        for measure in MEASURES:
            counts[f"{name} {measure}"] = same_type(
                collection.similarities_by(measure).matrix().astype(np.float64), types
            )
    others = len(rows) - 1
    same = np.mean([np.sum(types == kind) - 1 for kind in types])
    none_of_three = np.prod([(others - same - n) / (others - n) for n in range(3)])
    counts["chance"] = {"nearest": len(rows) * same / others, "three": len(rows) * (1 - none_of_three)}
    return {"tales": len(rows), **counts}


def same_type(similarities: Floats, types: NDArray[np.str_]) -> dict[str, int]:
    """Count stories whose nearest story, and one of the three nearest, has their type."""
    others = np.where(np.eye(len(types), dtype=bool), -np.inf, similarities)
    nearest = np.argsort(-others, axis=1, kind="stable")[:, :3]
    agrees = types[nearest] == types[:, None]
    return {"nearest": int(agrees[:, 0].sum()), "three": int(agrees.any(axis=1).sum())}


def postprocessing(chosen: argparse.Namespace) -> Result:
    """Compare MiniLM with and without post-processing, fitted on several collections, on the development triples."""
    encoder = load_encoder("minilm", long="truncate")
    triples = read_triples(chosen.data / "dev/dev_track_a.jsonl")
    texts = [text for texts in triples.texts() for text in texts]
    dev = unit_vectors(encoder, texts)
    labels = triples.labels == 1
    sample = other_texts(chosen.data / "sample/sample_track_a.jsonl", texts)
    training = other_texts(chosen.data / SYNTHETIC, texts)
    sample_vectors = unit_vectors(encoder, sample)
    collections = {
        "synthetic and sample": np.vstack([sample_vectors, unit_vectors(encoder, training)]),
        "sample": sample_vectors,
        "development": np.unique(dev, axis=0),
    }
    plain = right_answers(dev, labels)
    shared = SharedStories(story_numbers(triples))
    results: Result = {"plain": estimate(plain, shared)._asdict()}
    for name, vectors in collections.items():
        results[name] = {"stories": len(vectors)}
        for steps in STEPS:
            fitted = fit_steps(parse_steps(steps), vectors.astype(np.float32))
            right = right_answers(fitted(dev.astype(np.float32)), labels)
            change = difference(right, plain, shared)
            test = {"lost": change.lost, "won": change.won, "p": change.p}
            results[name][steps] = {**estimate(right, shared)._asdict(), **test}
    return results


def other_texts(path: Path, evaluated: Sequence[str]) -> list[str]:
    """Read the different texts of a file of triples that are not among those evaluated."""
    left_out = {normal_text(text) for text in evaluated}
    texts = {text: None for texts in read_triples(path).texts() for text in texts}
    return [text for text in texts if normal_text(text) not in left_out]


def right_answers(vectors: NDArray[np.floating[Any]], labels: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Answer triples by the cosines of their vectors (3N, D); mark the right answers (N,)."""
    scores = triple_cosines(vectors.reshape(len(labels), 3, -1))
    right: NDArray[np.bool_] = (scores[:, 0] > scores[:, 1]) == labels
    return right


def windows(chosen: argparse.Namespace) -> Result:
    """Find a story within three joined ones, read whole in windows or truncated: mean reciprocal rank."""
    stories, qrels = twins(chosen.data / TELL_ME_AGAIN, 240)
    text_of = {story["id"]: story["text"] for story in stories}
    pairs = [(text_of[query], text_of[story]) for query, story in dict(qrels).items()]
    random.Random(0).shuffle(pairs)
    joined = [" ".join(partner for _, partner in pairs[start : start + 3]) for start in range(0, len(pairs), 3)]
    target = np.arange(len(pairs)) // 3
    place = np.arange(len(pairs)) % 3
    ranks = {}
    results: Result = {"queries": len(pairs), "texts": len(joined)}
    for long in ("truncate", "windows"):
        encoder = load_encoder("minilm", long=long)
        queries = unit_vectors(encoder, [query for query, _ in pairs])
        similarity = queries @ unit_vectors(encoder, joined).T
        own = similarity[np.arange(len(pairs)), target]
        reciprocal = 1 / (1 + (similarity > own[:, None]).sum(axis=1))
        ranks[long] = reciprocal
        by_place = {name: float(reciprocal[place == n].mean()) for n, name in enumerate(("first", "second", "third"))}
        read = embed_stories(encoder, joined).coverage.share
        results[long] = {"all": estimate(reciprocal, target)._asdict(), **by_place, "read": read}
    results["p"] = difference(of_each_text(ranks["windows"]), of_each_text(ranks["truncate"])).p
    return results


def of_each_text(ranks: Floats) -> Floats:
    """Average the reciprocal ranks (3T,) of the three stories of each of T joined texts, which depend on each other."""
    means: Floats = ranks.reshape(-1, 3).mean(axis=1)
    return means


def retellings(chosen: argparse.Namespace) -> Result:
    """Measure groups of retellings by cosine: are their pairs of one work, and how many are found?"""
    import pandas as pd

    from narrlit.explore.pairs import retelling_groups, similar_pairs
    from narrlit.library.collection import Collection

    stories, _ = twins(chosen.data / TELL_ME_AGAIN, None)
    encoder = load("minilm")
    frame = pd.DataFrame(stories)
    first = ~frame["work"].duplicated()
    results: Result = {}
    for name, rows in {"all": first | True, "one a work": first}.items():
        collection = Collection.of(frame[rows], encoder, measure="cosine", progress=True)
        groups, threshold, _ = retelling_groups(collection, None, similar_pairs(collection, 10))
        work_of = dict(zip(collection.frame["id"], collection.frame["work"], strict=True))
        members = [[work_of[id] for id in ids] for _, ids in groups.groupby("group")["id"]]
        claimed = sum(pairs_of(len(works)) for works in members)
        correct = sum(pairs_of(count) for works in members for count in Counter(works).values())
        existing = sum(pairs_of(count) for count in Counter(collection.frame["work"]).values())
        results[name] = {
            "stories": len(collection.frame),
            "works": collection.frame["work"].nunique(),
            "threshold": float(threshold),
            "groups": len(members),
            "pure": correct / claimed if claimed else 0.0,
            "recalled": correct / existing if existing else 0.0,
        }
    return results


def pairs_of(count: int) -> int:
    """Count the pairs of so many stories."""
    return count * (count - 1) // 2


def view_anchors(chosen: argparse.Namespace) -> Result:
    """Write anchors.jsonl: anchors of sample and test triples that have views and are no development story.

    They train ttda704's heads, which need views but no labels; the positive is not read, so it is the next anchor.
    """
    development = {normal_text(story["text"]) for story in read_jsonl(chosen.data / "dev/dev_track_b.jsonl")}
    viewed = {normal_text(story["text"]) for story in read_jsonl(chosen.data / VIEWS)} - development
    anchors: dict[str, str] = {}
    for name in ("sample", "test"):
        for triple in read_jsonl(chosen.data / name / f"{name}_track_a.jsonl"):
            text = triple["anchor_text"]
            if normal_text(text) in viewed:
                anchors.setdefault(normal_text(text), text)
    texts = list(anchors.values())
    rows = [{"anchor": text, "positive": texts[(n + 1) % len(texts)]} for n, text in enumerate(texts)]
    Path("anchors.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return {"anchors": len(rows)}


def split_types(chosen: argparse.Namespace) -> Result:
    """Write types_train.csv and types_test.csv: folk tales of every other tale type, and those of the others."""
    tales = pd.read_json(chosen.data / "../retellings/tale_types.jsonl", lines=True)[["title", "group", "text"]]
    even = set(sorted(tales["group"].unique())[::2])
    trains = tales["group"].isin(even)
    tales[trains].to_csv("types_train.csv", index=False)
    tales[~trains].to_csv("types_test.csv", index=False)
    return {"train": int(trains.sum()), "test": int((~trains).sum())}


def read_jsonl(path: Path) -> list[dict[str, str]]:
    """Read a file of JSON Lines."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


STUDIES: dict[str, Callable[[argparse.Namespace], Result]] = {
    study.__name__: study for study in (tales, postprocessing, windows, retellings, view_anchors, split_types)
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a study and print its result."""
    parser = argparse.ArgumentParser(description="small studies behind what README and docs state")
    parser.add_argument("study", choices=STUDIES)
    parser.add_argument("--data", type=Path, help="folder of the task's data")
    parser.add_argument("--mpnet", help="folder or hub id of all-mpnet-base-v2")
    chosen = parser.parse_args(arguments)
    print(json.dumps(STUDIES[chosen.study](chosen)))


if __name__ == "__main__":
    main()
