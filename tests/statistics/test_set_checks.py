"""Checks of data: counts by hand, near-duplicates against every pair, and the task's data."""

import random
import unicodedata
from itertools import combinations
from pathlib import Path

import pytest

from narrlit.results.findings import WARNINGS, data_findings, with_verdict
from narrlit.statistics import set_checks
from narrlit.statistics.set_checks import CheckedSet, check_sets, check_tables, near_duplicates, read_set

DATA = Path(__file__).parents[2].parent / "shared/data/nsnrl"
SYNTHETIC = DATA / "synthetic/synthetic_data_for_classification_830of1900.jsonl"


def words(*numbers):
    return " ".join(f"w{number}" for number in numbers)


def triples(n, start=0, overlaps=True):
    """Triples of which the closer candidate, A in every second one, shares all words but one (or none) with x."""
    rows, labels = [], []
    for i in range(start, start + n):
        x = words(*range(100 * i, 100 * i + 9))
        near = words(*range(100 * i, 100 * i + 8), 100 * i + 50)
        far = words(*range(100 * i + 60, 100 * i + 69))
        first = near if overlaps else far
        other = far if overlaps else near
        rows.append((x, first, other) if i % 2 else (x, other, first))
        labels.append(bool(i % 2))
    return rows, labels


def of(entries, **wanted):
    """The one entry with these values."""
    [entry] = [entry for entry in entries if wanted.items() <= entry.items()]
    return entry


def finding(check, code):
    """The values of the one finding with a code."""
    [note] = [note for note in data_findings(check) if note.code == code]
    return note.values


def warnings(check):
    """Codes of the findings that are warnings in training."""
    return [note.code for note in data_findings(check) if note.code in WARNINGS]


def shingles_of(text):
    """Runs of three words."""
    words_of_text = text.split()
    return {tuple(words_of_text[start : start + 3]) for start in range(len(words_of_text) - 2)}


def test_near_duplicates_match_a_comparison_of_all_pairs():
    rng = random.Random(0)
    texts = []
    for _ in range(40):
        text = [f"w{rng.randrange(500)}" for _ in range(60)]
        texts.append(" ".join(text))
        for edits in (1, 3, 6, 12):
            changed = list(text)
            for place in rng.sample(range(60), edits):
                changed[place] = f"x{rng.randrange(500)}"
            texts.append(" ".join(changed))

    shingles = {text: shingles_of(text) for text in texts}
    jaccard = {}
    for x, y in combinations(texts, 2):
        jaccard[x, y] = len(shingles[x] & shingles[y]) / len(shingles[x] | shingles[y])

    for threshold in (0.4, 0.7):
        expected = {pair for pair, index in jaccard.items() if index >= threshold}
        near = near_duplicates(texts, threshold)
        found = {(one, other) for one, other in jaccard if other in near[one]}
        for one, other in found:
            assert near[one][other] == jaccard[one, other]
            assert near[other][one] == jaccard[one, other]
        assert found <= expected
        assert len(expected) > 50
        assert len(found) >= 0.95 * len(expected)


def test_near_duplicates_of_short_and_unusual_texts():
    near = near_duplicates(["a knight, rides", "a knight rides", "!!", "??", "", "\ud800"], 0.5)
    assert near["a knight, rides"] == {"a knight rides": 1.0}
    assert not any(near[text] for text in ("!!", "??", "", "\ud800"))


def test_shared_stories_pairs_and_anchors_are_counted():
    near = words(*range(20), 99)
    train = CheckedSet("train", [("x", "p", "q"), ("y z", "r", words(*range(20)))], [True, True], lines=[1, 2])
    validation = CheckedSet("validation", [("X", "q", "s"), ("r", "y  Z", near)], [True, False], True, lines=[4, 6])
    test = CheckedSet("test", [("x",), ("r",)], [None, None], lines=[1, 2])
    check = check_sets([train, validation, test], 0.5)

    assert check["shared"][0] == {
        "of": "validation", "within": "train", "stories": 6, "shared": 4, "exact": 2, "anchors": 1, "pairs": 2,
        "near_duplicates": 1,
    }  # fmt: skip
    assert of(check["shared"], of="validation", within="test")["shared"] == 2
    assert "pairs" not in of(check["shared"], of="test", within="train")
    assert [entry["near_duplicates"] for entry in check["files"]] == [0, 0, 0]

    twins = {"set": "train", "other": "validation", "line": 2, "other_line": 6, "jaccard": 0.947}  # 18 of 19 shingles
    assert twins in check["duplicates"]
    assert {"set": "train", "other": "test", "line": 1, "other_line": 1, "jaccard": 1.0} in check["duplicates"]
    assert len(check["duplicates"]) == 5 + 2 + 2

    pairs, near = data_findings(check)[:2]
    assert (pairs.code, pairs.values["learned"], pairs.values["graded"]) == ("shared_pairs", "train", "validation")
    assert pairs.values.items() >= {"shared": 4, "stories": 6, "pairs": 2}.items()
    assert (near.code, near.values["near_duplicates"]) == ("more_near_duplicates", 1)
    alone = [note.values["of"] for note in data_findings(check) if note.code == "shared_alone"]
    assert alone == ["test", "validation"]
    assert "shared_pairs" not in WARNINGS


def test_near_duplicates_with_the_threshold_1_have_the_same_shingles():
    texts = ["A knight rides at dawn.", "a knight rides at dawn", "A knight, rides at dawn!", "a knight at dawn"]
    for threshold in (0.995, 1.0):
        near = near_duplicates(texts, threshold)
        assert {text: len(twins) for text, twins in near.items()} == dict(zip(texts, (1, 0, 1, 0), strict=True))


def test_near_duplicates_within_a_set_are_listed_once():
    rows = [("x", words(*range(20)), "q"), ("y", words(*range(20), 99), "r")]
    check = check_sets([CheckedSet("train", rows, [True, True], lines=[3, 8])], 0.5)
    assert [{entry["line"], entry["other_line"]} for entry in check["duplicates"]] == [{3, 8}]
    assert check["files"][0]["near_duplicates"] == 2


def test_a_shared_story_without_a_shared_pair_leaks_no_label_but_gives_a_warning():
    train, validation = [("x", "p", "q")], [("p", "q", "s")]
    sets = [CheckedSet("train", train, [True]), CheckedSet("validation", validation, [True], True)]
    check = check_sets(sets)
    assert finding(check, "shared_in_training").items() >= {"shared": 2, "stories": 3, "pairs": 0}.items()
    assert warnings(check) == ["shared_in_training"]
    record = with_verdict(check)
    assert record["warnings"] == record["verdict"][:1] == [str(data_findings(check)[0])]
    assert "no pair is shared" in record["warnings"][0]

    # A method may read the texts of a test, but no model has learned them.
    check = check_sets([CheckedSet("validation", train, [True], True), CheckedSet("test", validation, [True], True)])
    assert warnings(check) == ["shared_in_test"]

    check = check_sets([CheckedSet("train", train, [True]), CheckedSet("validation", [("k", "l", "m")], [True], True)])
    assert data_findings(check)[0].code == "nothing_shared"
    assert warnings(check) == []


def test_word_overlap_in_train_alone_is_a_shortcut():
    (easy, labels), (hard, other) = triples(40), triples(30, 50, overlaps=False)
    sets = [CheckedSet("train", easy, labels, True), CheckedSet("validation", hard, other, True)]
    check = check_sets(sets)

    assert of(check["probes"], set="train", probe="jaccard")["correct"] == 40
    assert of(check["probes"], set="validation", probe="jaccard")["correct"] == 0
    assert of(check["probes"], set="train", probe="always_a")["correct"] == 20

    assert warnings(check) == ["shortcut_in_train"]
    solved = "100.0 % of train (40 of 40) but 0.0 % of validation (0 of 30)"
    assert finding(check, "shortcut_in_train") == {"probe": "word overlap (Jaccard)", "solved": solved}
    assert warnings(check_sets(sets[:1])) == ["shortcut_to_learn"]

    flipped = []
    for each in sets:
        labels = [not label for label in each.labels]
        flipped.append(CheckedSet(each.name, each.rows, labels, True))
    check = check_sets(flipped)
    assert warnings(check) == ["shortcut"]
    solved = "100.0 % of validation (30 of 30) but 0.0 % of train (0 of 40)"
    assert finding(check, "shortcut").items() >= {"solved": solved, "set": "validation"}.items()


def test_unbalanced_labels_and_lengths_are_shortcuts():
    rows = [("x", "short one", "a longer one") for _ in range(60)]
    train = CheckedSet("train", [("k", "l", "m")], [True])
    check = check_sets([train, CheckedSet("validation", rows, [False] * 45 + [True] * 15, True)])

    assert of(check["probes"], set="validation", probe="always_b")["correct"] == 45
    assert of(check["probes"], set="validation", probe="longer")["correct"] == 45
    assert of(check["probes"], set="validation", probe="shorter")["correct"] == 15
    shortcuts = [note.values["probe"] for note in data_findings(check) if note.code == "shortcut"]
    assert shortcuts == ["always B"]
    assert finding(check, "to_beat")["solved"] == "75.0 % of validation (45 of 60)"
    assert not [entry for entry in check["probes"] if entry["set"] == "train" and "always" in entry["probe"]]


def test_a_quick_check_probes_few_rows_and_a_full_check_all_rows(monkeypatch):
    monkeypatch.setattr(set_checks, "QUICK_ROWS", 10)
    rows, labels = triples(41)
    sets = [CheckedSet("train", rows, labels, True, lines=range(41))]
    quick = check_sets(sets)
    full = check_sets(sets, 0.5)

    assert {entry["n"] for entry in quick["probes"]} == {9}
    assert {entry["n"] for entry in full["probes"]} == {41}
    probes = [{entry["probe"] for entry in check["probes"]} for check in (quick, full)]
    assert probes[1] - probes[0] == {"tfidf", "bm25"}
    assert set(full) - set(quick) == {"duplicates"}


def test_columns_with_few_values_are_sources():
    (easy, labels), (hard, _) = triples(20), triples(20, 50, overlaps=False)
    columns = {"source": ["a"] * 20 + ["b"] * 20, "id": [str(i) for i in range(40)], "task": ["t"] * 40}
    check = check_sets([CheckedSet("train", easy + hard, labels * 2, True, columns, range(40))], 0.9)
    entries = [(e["column"], e["value"], e["correct"], e["n"]) for e in check["sources"] if e["probe"] == "jaccard"]

    assert entries == [("source", "a", 20, 20), ("source", "b", 0, 20)]

    tables = check_tables(check)
    assert list(tables) == ["Files", "Probes", "Probes by source"]
    assert tables["Probes"][0]["accuracy"] == "0.500 [0.352, 0.648]"


@pytest.mark.skipif(not DATA.is_dir(), reason="the task's data is not here")
def test_known_findings_in_the_tasks_data():
    names = {"train": SYNTHETIC, "validation": DATA / "dev/dev_track_a.jsonl", "test": DATA / "test/test_track_a.jsonl"}
    check = check_sets([read_set(name, str(path)) for name, path in names.items()])
    assert of(check["files"], set="train")["dropped"] == 1

    shared = of(check["shared"], of="validation", within="test")
    assert shared["shared"] == 164
    assert shared["stories"] == 479
    assert shared["pairs"] == 4
    solved = "97.6 % of train (809 of 829) but 45.0 % of validation (90 of 200)"
    assert finding(check, "shortcut_in_train")["solved"] == solved


def test_decomposed_copies_are_shared_and_near_duplicates():
    texts = ("Amélie cherche la perle perdue de sa mère.", "Un chevalier désespéré.", "Le boulanger de Besançon.")
    copies = tuple(unicodedata.normalize("NFD", text) for text in texts)
    edited = (f"{copies[0][:-1]} encore.", "Rien.", "Tout.")
    train = CheckedSet("train", [texts], [True], lines=[1])
    sets = [train, CheckedSet("validation", [copies, edited], [True, True], lines=[1, 2])]
    check = check_sets(sets, threshold=0.5)
    assert of(check["shared"], of="validation")["shared"] == 3
    assert of(check["shared"], of="validation")["pairs"] == 2
    assert of(check["shared"], of="validation")["near_duplicates"] == 1
