"""Stories that people told more than once: what trains narrlit-mini of them, and what is held back to choose it by.

    python benchmarks/retellings.py train FOLDER --triples tell_me_again_triplets.jsonl --out retellings.jsonl
    python benchmarks/retellings.py packaged COMMIT --out earlier
    python benchmarks/retellings.py measure FOLDER MODEL [MODEL ...]

FOLDER has JSON Lines files of versions (`group`, `text`): `tale_types`, which never trains, and `gutenberg_*` and
`gospel_parallels`, which train, except the families in HELD_BACK and every fifth fable. `train` writes their stories,
with the summaries of Tell Me Again! as one more family; near_groups.tsv in FOLDER lists groups that are no negatives.

`measure` prints one JSON object: how well a version finds another one of its group in each held-back set, by each
measure and by TF-IDF, with 95 % intervals by group and paired differences to the models named before. The sets are
tale_types, the families held back together, the held-back fables, and two tellings of each of these fables, one of
which has other animals and things. `packaged` writes the narrlit-mini that an earlier commit packaged.
"""

import argparse
import json
import re
import subprocess
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import narrlit
from narrlit.data.schema import connected, normal_text
from narrlit.measures.names import MeasureName
from narrlit.results import Result, difference
from narrlit.statistics.retrieval import METRICS

ROOT = Path(__file__).resolve().parents[1]
HELD_BACK = ("gutenberg_norse", "gutenberg_india")
"""Families that never train."""
FABLES = "gutenberg_aesop"
FABLES_APART = 5
"""Every fifth fable never trains."""
MEASURES: tuple[MeasureName, ...] = ("passages", "fused", "cosine")
ANIMALS = {
    "ant": "ants",
    "ape": "apes",
    "ass": "asses",
    "badger": "badgers",
    "bat": "bats",
    "bear": "bears",
    "beaver": "beavers",
    "bee": "bees",
    "beetle": "beetles",
    "boar": "boars",
    "bull": "bulls",
    "calf": "calves",
    "camel": "camels",
    "cat": "cats",
    "cock": "cocks",
    "cow": "cows",
    "crab": "crabs",
    "crane": "cranes",
    "crow": "crows",
    "deer": "deer",
    "dog": "dogs",
    "dolphin": "dolphins",
    "donkey": "donkeys",
    "dove": "doves",
    "eagle": "eagles",
    "elephant": "elephants",
    "fawn": "fawns",
    "fly": "flies",
    "fox": "foxes",
    "frog": "frogs",
    "gnat": "gnats",
    "goat": "goats",
    "goose": "geese",
    "grasshopper": "grasshoppers",
    "hare": "hares",
    "hawk": "hawks",
    "hedgehog": "hedgehogs",
    "hen": "hens",
    "heron": "herons",
    "horse": "horses",
    "jackdaw": "jackdaws",
    "kid": "kids",
    "kite": "kites",
    "lamb": "lambs",
    "lion": "lions",
    "lizard": "lizards",
    "mole": "moles",
    "monkey": "monkeys",
    "mouse": "mice",
    "mule": "mules",
    "nightingale": "nightingales",
    "otter": "otters",
    "owl": "owls",
    "ox": "oxen",
    "oyster": "oysters",
    "parrot": "parrots",
    "partridge": "partridges",
    "peacock": "peacocks",
    "pig": "pigs",
    "pigeon": "pigeons",
    "rabbit": "rabbits",
    "ram": "rams",
    "rat": "rats",
    "raven": "ravens",
    "sheep": "sheep",
    "snake": "snakes",
    "sparrow": "sparrows",
    "spider": "spiders",
    "stag": "stags",
    "stork": "storks",
    "swallow": "swallows",
    "swan": "swans",
    "tiger": "tigers",
    "tortoise": "tortoises",
    "viper": "vipers",
    "vulture": "vultures",
    "wasp": "wasps",
    "weasel": "weasels",
    "wolf": "wolves",
}
"""Animals of fables, with their plurals."""
THINGS = {
    "apple": "apples",
    "arrow": "arrows",
    "axe": "axes",
    "basket": "baskets",
    "bone": "bones",
    "bowl": "bowls",
    "bread": "loaves",
    "brook": "brooks",
    "cart": "carts",
    "cheese": "cheeses",
    "coat": "coats",
    "corn": "seeds",
    "cup": "cups",
    "egg": "eggs",
    "feather": "feathers",
    "fig": "figs",
    "grape": "grapes",
    "hill": "hills",
    "jar": "jars",
    "jewel": "jewels",
    "lamp": "lamps",
    "meat": "steaks",
    "milk": "creams",
    "mountain": "mountains",
    "nest": "nests",
    "net": "nets",
    "nut": "nuts",
    "oak": "oaks",
    "pearl": "pearls",
    "pitcher": "pitchers",
    "pond": "ponds",
    "pot": "pots",
    "purse": "purses",
    "reed": "reeds",
    "river": "rivers",
    "rope": "ropes",
    "sack": "sacks",
    "spear": "spears",
    "stick": "sticks",
    "stone": "stones",
    "sword": "swords",
    "thorn": "thorns",
    "tree": "trees",
    "vine": "vines",
    "wheat": "oats",
}
"""Things in fables, with a plural or a word that takes its place."""
WORD = re.compile(r"[A-Za-z]+")


def read_versions(path: Path) -> list[dict[str, str]]:
    """Read the stories of a family."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def is_apart(group: str, groups: Sequence[str]) -> bool:
    """Return True for every fifth of the fables, which never trains."""
    return groups.index(group) % FABLES_APART == 0


def groups_of(rows: Sequence[Mapping[str, str]]) -> list[str]:
    """List the groups of a family in their order."""
    return sorted({row["group"] for row in rows})


def training_rows(folder: Path, triples: Path | None) -> list[dict[str, str]]:
    """Collect the stories that train, with columns text, group and family."""
    found = []
    for path in sorted([*folder.glob("gutenberg_*.jsonl"), folder / "gospel_parallels.jsonl"]):
        rows = read_versions(path)
        groups = groups_of(rows)
        for row in rows:
            is_held_back = path.stem in HELD_BACK or (path.stem == FABLES and is_apart(row["group"], groups))
            if not is_held_back:
                found.append({"group": row["group"], "family": path.stem, "text": row["text"]})
    if triples is not None:
        found += summaries_of(triples)
    return found


def summaries_of(triples: Path) -> list[dict[str, str]]:
    """Collect the summaries of Tell Me Again!, those of one work as a group: a work is in more than one triple."""
    pairs = [(anchor, positive) for anchor, positive, _ in narrlit.read_triples(str(triples)).texts()]
    texts = {normal_text(text): text for pair in pairs for text in pair}
    number_of = {text: number for number, text in enumerate(texts)}
    links = [(number_of[normal_text(anchor)], number_of[normal_text(positive)]) for anchor, positive in pairs]
    works = connected(links, len(texts)).tolist()
    return [
        {"group": f"summary-{work}", "family": "summaries", "text": text}
        for work, text in zip(works, texts.values(), strict=True)
    ]


def swapped(text: str, rng: np.random.Generator) -> str:
    """Replace the animals and things of a fable by others, the same word always by the same other.

    >>> swapped("The Fox saw grapes; the fox jumped.", np.random.default_rng(3))
    'The Ram saw spears; the ram jumped.'
    """
    words = {word.lower() for word in WORD.findall(text)}
    new_word: dict[str, str] = {}
    for names in (ANIMALS, THINGS):
        own = [name for name, plural in names.items() if not words.isdisjoint((name, plural))]
        others = [name for name in names if name not in own]
        for name, other in zip(own, rng.permutation(others).tolist(), strict=False):
            new_word |= {names[name]: names[other], name: other}

    def replaced(word: re.Match[str]) -> str:
        """Return the other animal or thing, with the capitals of the word."""
        other = new_word.get(word[0].lower(), word[0])
        if word[0].isupper():
            return other.upper()
        return other.capitalize() if word[0].istitle() else other

    return WORD.sub(replaced, text)


def held_back_fables(folder: Path) -> list[dict[str, str]]:
    """Read the fables that never train and have two tellings or more."""
    rows = read_versions(folder / f"{FABLES}.jsonl")
    groups = groups_of(rows)
    tellings = Counter(row["group"] for row in rows)
    return [row for row in rows if is_apart(row["group"], groups) and tellings[row["group"]] > 1]


def with_one_swapped(fables: Sequence[Mapping[str, str]]) -> list[dict[str, str]]:
    """Take two tellings of each fable, the second with other animals and things."""
    of_group = defaultdict(list)
    for row in fables:
        of_group[row["group"]].append(row["text"])
    rng = np.random.default_rng(0)
    found = []
    for group, texts in of_group.items():
        found += [{"group": group, "text": texts[0]}, {"group": group, "text": swapped(texts[1], rng)}]
    return found


def held_back_sets(folder: Path) -> dict[str, pd.DataFrame]:
    """Collect the stories that never train, as tables with columns text and group."""
    fables = held_back_fables(folder)
    sets = {
        "tale_types": read_versions(folder / "tale_types.jsonl"),
        "families": [row for family in HELD_BACK for row in read_versions(folder / f"{family}.jsonl")],
        "fables": fables,
        "swapped_fables": with_one_swapped(fables),
    }
    return {name: pd.DataFrame(rows)[["text", "group"]] for name, rows in sets.items()}


def measured(folder: Path, models: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Measure models on each set by each measure, each compared with the models named before it."""
    encoders = {model: narrlit.load(model) for model in models}
    found: dict[str, dict[str, Any]] = {}
    for name, stories in held_back_sets(folder).items():
        collections = {model: narrlit.Collection.of(stories, encoder) for model, encoder in encoders.items()}
        found[name] = {"stories": len(stories), "groups": stories["group"].nunique()}
        group_of = collections[models[0]].frame.set_index("id")["group"]
        for measure in MEASURES:
            result = narrlit.retrieval(collections, same="group", measures=[measure])
            groups = group_of[result.answers["query"]].tolist()
            found[name]["tfidf"] = means(result, "tfidf")
            found[name][measure] = {model: means(result, f"{model}, {measure}") for model in models}
            for base, other in combinations(models, 2):
                found[name][measure][other][f"to {base}"] = {
                    metric: difference(
                        result.answers[f"{other}, {measure}.{metric}"],
                        result.answers[f"{base}, {measure}.{metric}"],
                        groups,
                    )._asdict()
                    for metric in METRICS
                }
    return found


def means(result: Result, system: str) -> dict[str, Any]:
    """Return the mean of each metric, with its interval."""
    return {metric: result.estimate(system, metric)._asdict() for metric in METRICS}


def write_packaged(commit: str, out: Path) -> None:
    """Write the folder of the model that a commit packaged."""
    out.mkdir()
    for name in ("encoder.json", "average.json", "weights.safetensors"):
        file = f"{commit}:src/narrlit/narrlit_mini/{name}"
        done = subprocess.run(["git", "-C", str(ROOT), "show", file], capture_output=True, check=True)
        (out / name).write_bytes(done.stdout)


def main() -> None:
    """Write the training stories, or measure models."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    training = commands.add_parser("train")
    training.add_argument("folder", type=Path)
    training.add_argument("--triples", type=Path)
    training.add_argument("--out", type=Path, required=True)
    packaging = commands.add_parser("packaged")
    packaging.add_argument("commit")
    packaging.add_argument("--out", type=Path, required=True)
    measuring = commands.add_parser("measure")
    measuring.add_argument("folder", type=Path)
    measuring.add_argument("models", nargs="+")
    options = parser.parse_args()
    if options.command == "train":
        rows = training_rows(options.folder, options.triples)
        options.out.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        return
    if options.command == "packaged":
        write_packaged(options.commit, options.out)
        return
    print(json.dumps(measured(options.folder, options.models)))


if __name__ == "__main__":
    main()
