"""narrlit check-pairs: tables for readers, and data that the other commands read."""

import csv
import json
from pathlib import Path

import pytest

from narrlit.data.rows import read_rows
from narrlit.data.tales import sample_tales
from narrlit.explore.labeled_pairs import VERSION_OF
from narrlit.explore.pair_decisions import PairDecisions

pytestmark = pytest.mark.usefixtures("memoized_minilm")

TYPE_OF = {Path(tale["file_name"]).stem: tale["atu"] for tale in sample_tales()}


def fill_in(path, decide):
    """Fill in the column `decision` of a table of pairs."""
    with Path(path).open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        row["decision"] = decide(row["id_a"], row["id_b"])
    with Path(path).open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def by_type(a, b):
    """Decide as the catalog does."""
    return "same" if TYPE_OF[a] == TYPE_OF[b] else "different"


@pytest.fixture
def decided(narrlit):
    """The 24 tales, and the tables of two readers on their most similar pairs."""
    assert narrlit("data", "sample", "tales").code == 0
    for reader in ("anna", "ben"):
        assert narrlit("check-pairs", "tales", "--limit", "30", "--out", f"{reader}.csv").code == 0
    fill_in("anna.csv", by_type)
    fill_in("ben.csv", lambda a, b: "unsure" if "gilitrutt" in (a, b) else by_type(a, b))
    return "anna.csv,ben.csv"


def test_decisions_become_groups_triples_and_an_agreement(narrlit, decided):
    found = narrlit(
        *("check-pairs", "tales", "--decisions", decided, "--limit", "5"),
        *("--out", "next.csv", "--groups", "groups.csv", "--triples", "triples.jsonl"),
    )

    assert found.code == 0, found.err
    assert "5 pairs; 30 decided pairs and 0 pairs of near-copies left out." in found.out
    assert "Agreement of readers: Krippendorff's alpha 0." in found.out
    assert "30 pairs with two or more readers" in found.out

    first = {(row.value["id_a"], row.value["id_b"]) for row in read_rows("anna.csv").rows}
    following = {(row.value["id_a"], row.value["id_b"]) for row in read_rows("next.csv").rows}
    assert len(following - first) == 5

    stories = [row.value for row in read_rows("groups.csv").rows]
    assert len(stories) == 24
    for row in stories:
        if row[VERSION_OF]:
            assert TYPE_OF[row[VERSION_OF]] == TYPE_OF[row["id"]]


def test_retrieval_reads_the_groups_and_evaluate_the_triples(narrlit, decided):
    options = ("--groups", "groups.csv", "--triples", "triples.jsonl")
    assert narrlit("check-pairs", "tales", "--decisions", decided, *options).code == 0

    ranked = narrlit("retrieval", "groups.csv", "--same", VERSION_OF, "--json")
    assert ranked.code == 0, ranked.err
    assert json.loads(ranked.out)["settings"]["stories"] == 24

    evaluated = narrlit("evaluate", "triples.jsonl", "--model", "minilm", "--json")
    assert evaluated.code == 0, evaluated.err
    count = len(Path("triples.jsonl").read_text(encoding="utf-8").splitlines())
    assert json.loads(evaluated.out)["figures"][0]["n"] == count > 10


@pytest.mark.slow
def test_fit_trains_on_the_groups_and_the_triples(narrlit, decided, tiny):
    options = ("--groups", "groups.csv", "--triples", "triples.jsonl")
    assert narrlit("check-pairs", "tales", "--decisions", decided, *options).code == 0

    found = narrlit(
        *("fit", "--config", "configs/narrlit_mini.yaml", "--config", "configs/hardware/cpu.yaml"),
        *("--model.init_args.encoder.model", tiny(), "--model.init_args.encoder.max_length", "64"),
        *("--data.train", "triples.jsonl"),
        *("--data.validation", "triples.jsonl", "--data.versions.files", "groups.csv"),
        *("--data.versions.same", VERSION_OF, "--data.versions.setting", "country"),
        *("--trainer.max_epochs", "1", "--trainer.limit_train_batches", "2"),
    )

    assert found.code == 0, found.err
    assert "versions: " in found.err
    assert "triples.jsonl: " in found.err


def test_the_file_of_decisions_serves_as_a_table(narrlit):
    assert narrlit("data", "sample", "tales").code == 0
    decisions = PairDecisions("decisions.jsonl")
    decisions.add("cinderella", "ye_xian", "same", "anna")
    decisions.add("cinderella", "gilitrutt", "different", "anna")
    found = narrlit("check-pairs", "tales", "--decisions", "decisions.jsonl", "--limit", "1")

    assert found.code == 0, found.err
    assert "1 pair of versions and 1 pair of different stories: 1 group with 2 of 24 stories, 1 triple" in found.out
    assert "no pair was decided by two readers" in found.out


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--k", "0"], "--k 0: must be at least 1"),
        (["--limit", "0"], "--limit 0: must be at least 1"),
        (["--out", "pairs.html"], "pairs.html: name a file that ends in .csv"),
        (["--decisions", "none.csv"], "none.csv does not exist"),
        (["--groups", "groups.csv"], "groups.csv: no group of versions to write"),
    ],
)
def test_mistakes_cost_one_line(narrlit, make, options, words):
    make("tales.jsonl", [{"text": "A king ruled a land."}, {"text": "A queen ruled a sea."}])
    found = narrlit("check-pairs", "tales.jsonl", *options)

    assert found.code == 2
    assert words in found.err
