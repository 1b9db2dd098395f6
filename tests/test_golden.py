"""What commands write, as values: keys and figures of every file, compared with those kept in tests/golden.

    NARRLIT_WRITE_GOLDEN=1 pytest tests/test_golden.py

writes them anew. A change of a kept file belongs to the commit that says why the output changed. Sentences, pictures
and what differs from run to run (times, versions, paths) are left out.
"""

import csv
import json
import math
import os
import shlex
import shutil
from functools import partial
from pathlib import Path

import pytest
import yaml
from json_files import read_json, read_json_lines, write_json_lines
from llm_server import MODEL, llm_server, question

from narrlit.cli import main
from narrlit.data.readers import read_triples
from narrlit.data.tales import sample_tales

pytestmark = [pytest.mark.usefixtures("memoized_minilm"), pytest.mark.slow]

GOLDEN = Path(__file__).parent / "golden"
FLOATS = 1e-5
"""Cosines of float32 embeddings differ by some 1e-7 from machine to machine, and scores of passages add up many."""
FROM_RUN_TO_RUN = {
    "command", "commit", "created", "date", "device", "digest", "dirty", "duration", "elapsed", "ended",
    "environment", "evaluation_phases", "evaluation_time", "fingerprint", "finished", "folder", "git", "hardware",
    "home", "machine", "mteb_version", "narrlit", "path", "pid", "platform", "python", "seconds", "source",
    "started", "time", "timestamp", "version", "versions", "wall_time",
}  # fmt: skip
"""Keys that are left out."""
FIT = "--config configs/quickstart.yaml --config configs/hardware/cpu.yaml --config tiny.yaml"
COMMANDS = {
    "evaluate_baseline": "evaluate validation.jsonl --baseline tfidf --out figures",
    "evaluate_model": "evaluate validation.csv --model minilm --out figures",
    "compare": (
        "compare validation.csv --models minilm,meanmax:minilm,passages:minilm --baselines jaccard,longer,bm25 "
        "--by kind --out figures"
    ),
    "retrieval_versions": (
        "retrieval tales --same atu --control country --model minilm --measure passages,cosine,lexical --out figures"
    ),
    "retrieval_judgments": "retrieval tales --qrels qrels.tsv --model minilm --out figures",
    "check_data": "data check train.jsonl validation.jsonl --out figures",
    "profile": "profile minilm --split test --out figures",
    "fuse": "fuse validation.jsonl --models minilm --views validation_views.jsonl --grid 0.5 --folds 2 --out figures",
    "pairs": "pairs tales --model minilm --threshold 0 --out figures.csv",
    "check_pairs": (
        "check-pairs tales --model minilm --decisions decided.csv --out figures.csv --groups groups.csv "
        "--triples triples.csv"
    ),
    "catalog": "catalog kinds.jsonl --model minilm --column kind --at-least 0 --out figures.csv --filled filled.csv",
    "map": "map tales --model minilm --k 2 --out map.html",
    "mine": "data mine train.jsonl --model minilm --per-example 1 --out figures.jsonl",
    "search": "search tales.index wolf --out figures.csv",
    "judge": "judge validation.jsonl --model minilm --base-url {server} --llm-model {llm} --out figures.jsonl",
    "fit": f"fit {FIT}",
    "seeds": f"fit {FIT} --seeds 1,2",
    "crossval": f"crossval {FIT} --folds 2 --out figures",
    "ablate": f"ablate {FIT} --ablations other.yaml --out figures",
    "tune": f"tune {FIT} --space space.yaml --trials 2 --out figures",
    "mteb": "evaluate validation.jsonl --model {tiny} --mteb StoryTriples --out figures",
    "export": "export minilm --out figures",
    "average": "average {tiny} --out figures",
}


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """A folder with everything that the commands read."""
    folder = tmp_path_factory.mktemp("world")
    with pytest.MonkeyPatch.context() as patched:
        patched.chdir(folder)
        assert main(["data", "storyworld", "--out", ".", "--train", "8", "--validation", "12", "--test", "3"]) == 0
        assert main(["data", "sample", "tales"]) == 0
        assert main(["index", "tales", "--model", "minilm", "--out", "tales.index"]) == 0
    rows = read_json_lines(folder / "validation.jsonl")
    with (folder / "validation.csv").open("w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, [*rows[0], "kind"])
        table.writeheader()
        table.writerows(row | {"kind": "even" if place % 2 == 0 else "odd"} for place, row in enumerate(rows))
    (folder / "qrels.tsv").write_text("swan_maiden\tfeather_robe\t1\nfeather_robe\tswan_maiden\t1\n", encoding="utf-8")
    (folder / "decided.csv").write_text(
        "id_a,id_b,decision\nswan_maiden,feather_robe,same\nswan_maiden,cinderella,different\n", encoding="utf-8"
    )
    kinds = [{"text": tale["text"], "kind": tale["atu"] if n % 3 else ""} for n, tale in enumerate(sample_tales())]
    write_json_lines(folder / "kinds.jsonl", kinds)
    (folder / "other.yaml").write_text("model: {init_args: {scale: 2.0}}\n", encoding="utf-8")
    (folder / "space.yaml").write_text(
        "model.optimization.learning_rate: {choices: [0.001, 0.0001]}\n", encoding="utf-8"
    )
    return folder


@pytest.fixture
def files(world, tiny, tmp_path, monkeypatch):
    """A folder of its own with the same files, in which commands run."""
    shutil.copytree(world, tmp_path, dirs_exist_ok=True)
    settings = {
        "model": {"init_args": {"encoder": {"model": str(tiny()), "max_length": 64}}},
        "data": {
            "class_path": "FileData",
            "init_args": {"train": "train.jsonl", "validation": "validation.jsonl", "loading": {"batch_size": 4}},
        },
        "trainer": {"max_epochs": 2},
    }
    (tmp_path / "tiny.yaml").write_text(yaml.safe_dump(settings), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def says_a(triples, request):
    """Reply to a request: the truth to every second question."""
    shown = json.loads(question(request))
    place = next(place for place, texts in enumerate(triples.texts()) if texts[0] == shown["anchor"])
    _, a, b = triples.texts()[place]
    closer = a if triples[place].a_is_closer == (place % 2 == 0) else b
    return json.dumps({"closer": "A" if closer == shown["A"] else "B"})


def values_of(path):
    """Read the values of a file; None of a file of sentences, pictures or weights."""
    if path.name.startswith("tokenizer") or path.name.startswith("special_tokens"):
        return None
    if path.suffix == ".json":
        return without(read_json(path))
    if path.suffix == ".jsonl":
        return [without(row) for row in read_json_lines(path)]
    if path.suffix == ".csv":
        with path.open(encoding="utf-8-sig", newline="") as file:
            return [without(row) for row in csv.DictReader(file)]
    return None


def without(value):
    """Leave out what differs from run to run."""
    if isinstance(value, dict):
        if value.keys() == {"code", "values", "text"}:  # a note, whose sentence is no value
            value = {"code": value["code"], "values": value["values"]}
        return {key: without(inner) for key, inner in value.items() if key not in FROM_RUN_TO_RUN}
    if isinstance(value, list):
        return [without(inner) for inner in value]
    if isinstance(value, str) and (os.sep in value or len(value) > 80 or "version_" in value):
        return "..."
    return value


def differences(kept, found, place=""):
    """List the places where two values differ."""
    if isinstance(kept, dict) and isinstance(found, dict):
        for key in kept.keys() | found.keys():
            if key not in kept or key not in found:
                yield f"{place}/{key}: {'new' if key in found else 'gone'}"
            else:
                yield from differences(kept[key], found[key], f"{place}/{key}")
    elif isinstance(kept, list) and isinstance(found, list):
        if len(kept) != len(found):
            yield f"{place}: {len(kept)} and then {len(found)} items"
        for number, (one, other) in enumerate(zip(kept, found, strict=False)):
            yield from differences(one, other, f"{place}/{number}")
    elif not alike(kept, found):
        yield f"{place}: {kept!r} and then {found!r}"


def alike(kept, found):
    """Compare two plain values, numbers and texts of numbers with a tolerance."""
    try:
        one, other = float(kept), float(found)
    except (TypeError, ValueError):
        return kept == found
    return math.isclose(one, other, rel_tol=FLOATS, abs_tol=FLOATS) or (math.isnan(one) and math.isnan(other))


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_writes_the_values_that_are_kept(narrlit, files, tiny, name):
    before = {path for path in files.rglob("*") if path.is_file()}
    triples = read_triples("validation.jsonl")
    with llm_server(reply_of=partial(says_a, triples)) as server:
        words = COMMANDS[name].format(server=server.url, llm=MODEL, tiny=shlex.quote(str(tiny())))
        done = narrlit(*shlex.split(words))
    assert done.code == 0, done.err

    written = sorted(path for path in files.rglob("*") if path.is_file() and path not in before)
    found = {}
    for path in written:
        values = None if "embeddings" in path.parts else values_of(path)
        if values is not None:
            found[str(path.relative_to(files))] = values
    assert found

    golden = GOLDEN / f"{name}.json"
    if os.environ.get("NARRLIT_WRITE_GOLDEN"):
        golden.write_text(json.dumps(found, indent=1, ensure_ascii=False, default=str) + "\n", encoding="utf-8")
    kept = read_json(golden)
    assert not list(differences(kept, json.loads(json.dumps(found))))
