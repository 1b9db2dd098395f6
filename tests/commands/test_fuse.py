"""narrlit fuse: the table, what chooses and what judges, and mistakes."""

import json
from pathlib import Path

import numpy as np
import pytest
from command_lines import last_of

from narrlit.cli import main
from narrlit.commands.fuse_contest import Contest
from narrlit.commands.fuse_report import report, table
from narrlit.commands.fusion_settings import read_settings
from narrlit.data.readers import read_triples
from narrlit.data.records import Triple
from narrlit.data.table import index_triples
from narrlit.data.writers import write_triples
from narrlit.errors import OptionError
from narrlit.models.fusion import PRESETS, Fusion

QUICK = ["--grid", "0.5", "--folds", "3"]


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """Thirty triples of StoryWorld with their true views."""
    folder = tmp_path_factory.mktemp("fuse")
    assert main(["storyworld", "--out", str(folder), "--train", "1", "--validation", "30", "--test", "1"]) == 0
    return folder / "validation.jsonl", folder / "validation_views.jsonl"


@pytest.fixture
def fuse(narrlit, world, tiny):
    """fuse(*options): the command's outcome and, where it went well, fuse.json."""

    def run(*options, triples=world[0], models=None):
        models = models or tiny()
        found = narrlit(
            *last_of("fuse", triples, "--models", models, "--views", world[1], "--out", "o", *QUICK, *options)
        )
        return found, json.loads(Path("o/fuse.json").read_text()) if found.code == 0 else None

    return run


@pytest.fixture(scope="module")
def plain(world, tiny, tmp_path_factory):
    """What the tiny model's report says with the settings that come with the package."""
    folder = tmp_path_factory.mktemp("plain")
    given = [str(world[0]), "--models", tiny(), "--views", str(world[1]), "--out", str(folder), *QUICK]
    assert main(["fuse", *given]) == 0
    return json.loads((folder / "fuse.json").read_text())


def by_name(entry):
    return {setting["name"]: setting for setting in entry["settings"]}


def contest_of(seed, count=30, folds=3, step=0.25, grouped=False):
    """Triples of random stories, and random unit vectors of their parts."""
    generator = np.random.default_rng(seed)
    first = [0] * count if not grouped else [row // 5 for row in range(count)]
    triples = [
        Triple(f"x{group if grouped else row}", f"a{row}", f"b{row}", bool(generator.random() < 0.5))
        for row, group in enumerate(first)
    ]
    index = index_triples(triples)
    vectors = generator.normal(size=(len(index.table), 4, 8)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=-1, keepdims=True)
    return Contest.of(triples, index, step, folds, 0), vectors


def planted(contest, vectors, part, rows):
    """Vectors whose `part` alone is right on these triples, and wrong on all others; the other parts say nothing."""
    index, found = contest.index, vectors.copy()
    found[:] = 0
    found[:, :, 7] = 1
    for row in range(len(index)):
        near, far = (index.a, index.b) if index.labels[row] == (row in rows) else (index.b, index.a)
        for story, axis in ((index.anchors[row], 0), (near[row], 0), (far[row], 1)):
            found[story, part] = np.eye(8)[axis]
    return found


def test_full_only_is_what_evaluate_says(plain, narrlit, world, tiny):
    (entry,) = plain["models"]
    alone = json.loads(narrlit("evaluate", world[0], "--model", tiny(), "--json").out)
    found = by_name(entry)["full_only"]
    assert {name: found[name] for name in ("n", "correct", "ties")} == {"n": 30, "correct": alone["correct"], "ties": 0}
    assert (found["against_full_only"]["difference"], found["against_full_only"]["won"]) == (0, 0)


@pytest.mark.parametrize("setting", ["submitted", "action_only"])
def test_a_setting_is_what_evaluate_says_of_it(plain, narrlit, world, tiny, setting):
    options = ["--model", tiny(), "--views", world[1], "--fusion", setting, "--json"]
    alone = json.loads(narrlit("evaluate", world[0], *options).out)
    found = by_name(plain["models"][0])[setting]
    assert (found["correct"], found["ties"]) == (alone["correct"], alone["ties"])


def test_true_views_beat_the_text_alone(plain):
    found = by_name(plain["models"][0])
    for name in ("equal", "action_only"):
        against = found[name]["against_full_only"]
        assert found[name]["correct"] > found["full_only"]["correct"] + 3
        assert against["won"] - against["lost"] == found[name]["correct"] - found["full_only"]["correct"]
        assert against["difference"] == pytest.approx(found[name]["accuracy"] - found["full_only"]["accuracy"])
        assert against["difference"] > 0
    assert plain["models"][0]["best_on_other_folds"]["correct"] > found["full_only"]["correct"]
    assert list(found) == ["equal", "full_only", "submitted", "higher_theme", "action_only"]


def test_the_table_is_printed_and_kept_alike(fuse, world, tmp_path):
    found, kept = fuse("--views", f"{world[1]} , {world[1]}")
    assert len(kept["views"]["files"]) == 2
    assert (tmp_path / "o/fuse.md").read_text() == found.out == table(kept)
    assert "| submitted | 0.5, 0.1, 0.2, 0.2 | 30 | 0." in found.out
    assert found.out.count("NOT A RESULT") == 2
    assert "Submitted: chosen by ttda704 for its accuracy on the task's development triples" in found.out
    assert "the best of 10 settings on the very triples that chose it" in found.out
    assert kept["grid_settings"] == 10
    assert kept["views"]["by_position"] == 0


def test_every_model_has_its_block(fuse, tiny):
    found, kept = fuse(models=f"{tiny()}, {tiny('qwen3', 'lasttoken')}")
    assert [entry["model"] for entry in kept["models"]] == [tiny(), tiny("qwen3", "lasttoken")]
    assert found.out.count("## ") == 2
    one, other = kept["models"]
    assert one["settings"] != other["settings"]


def test_a_mistake_in_a_later_model_leaves_the_earlier_one(fuse, tiny, tmp_path):
    found, _ = fuse(models=f"{tiny()},no/such-model")
    assert (found.code, "no/such-model" in found.err) == (2, True)
    (entry,) = json.loads((tmp_path / "o/fuse.json").read_text())["models"]
    assert entry["model"] == tiny()
    assert f"## {tiny()}" in found.out


def test_flipped_labels_flip_the_table(fuse, plain, world, tmp_path):
    triples = read_triples(world[0]).records
    write_triples(tmp_path / "bare.jsonl", [Triple(*triple.texts) for triple in triples])
    labels = "".join(json.dumps({"text_a_is_closer": not triple.a_is_closer}) + "\n" for triple in triples)
    (tmp_path / "labels.jsonl").write_text(labels)
    _, flipped = fuse("--labels", "labels.jsonl", triples="bare.jsonl")
    for one, other in zip(plain["models"][0]["settings"], flipped["models"][0]["settings"], strict=True):
        assert one["correct"] + other["correct"] == 30
        if one["name"] != "full_only":
            assert one["against_full_only"]["difference"] == -other["against_full_only"]["difference"]


def test_own_settings_and_views_by_position(fuse, narrlit, world, tiny, tmp_path):
    (tmp_path / "own.yaml").write_text("settings:\n  ends: [0, 0, 0, 2]\n  same: [0, 0, 0, 1]\n")
    found, kept = fuse("--settings", "own.yaml")
    ends, same = kept["models"][0]["settings"]
    assert (ends["weights"], same["weights"]) == ([0, 0, 0, 2], [0, 0, 0, 1])
    assert ends["correct"] == same["correct"]
    assert "ttda704" not in found.out
    options = ["--models", tiny(), "--settings", "own.yaml", *QUICK]
    cut = narrlit("fuse", world[0], "--missing-views", "positional", *options)
    assert cut.code == 0, cut.err
    assert "views: no file, 90 stories cut by position" in cut.out
    assert cut.out.split("\n\n")[1] != found.out.split("\n\n")[1]


def test_noise_on_one_fold_does_not_choose_for_it():
    contest, vectors = contest_of(1)
    rows = set(contest.folds[1].tolist())
    entry = contest.entry("m", planted(contest, vectors, 1, rows), {"theme": Fusion(0, 1, 0, 0)})
    # Theme is right on fold 1 alone, so that the others never choose it; and ties go to B.
    assert entry["settings"][0]["correct"] == len(rows)
    fold = entry["best_on_other_folds"]["by_fold"][1]
    assert fold["weights"][1] == 0
    everywhere = contest.entry("m", planted(contest, vectors, 1, set(range(30))), {})
    assert everywhere["best_on_other_folds"]["correct"] == everywhere["best_on_these_triples"]["correct"] == 30


@pytest.mark.parametrize("seed", range(5))
def test_on_noise_the_chosen_are_not_the_best_of_all(seed):
    contest, vectors = contest_of(seed, step=0.1)
    entry = contest.entry("m", vectors, {})
    found, best = entry["best_on_other_folds"], entry["best_on_these_triples"]
    assert found["correct"] < best["correct"]
    assert found["correct"] == sum(fold["correct"] for fold in found["by_fold"])
    assert found["n"] == sum(fold["n"] for fold in found["by_fold"]) == 30
    for fold in found["by_fold"]:
        assert fold["on_others"]["n"] + fold["n"] == 30
        assert fold["on_others"]["accuracy"] >= best["correct"] / 30 - fold["n"] / 30


def test_triples_that_share_a_story_stay_together():
    contest, _ = contest_of(2, grouped=True)
    fold_of = {row: fold for fold, rows in enumerate(contest.folds) for row in rows.tolist()}
    assert sorted(fold_of) == list(range(30))
    for row in range(30):
        assert fold_of[row] == fold_of[row // 5 * 5]
    assert contest.described["groups"] == 6
    with pytest.raises(OptionError, match="only 6 such groups"):
        contest_of(2, grouped=True, folds=7)


def test_the_report_says_how_many_were_tried():
    contest, vectors = contest_of(3)
    found = report([contest.entry("m", vectors, {"a": Fusion(), "b": Fusion()})], contest)
    assert (found["grid_settings"], found["folds"], found["fold_seed"]) == (35, 3, 0)
    assert "not corrected for 3 comparisons" in found["meaning"]["against_full_only"]
    assert "submitted" not in found["meaning"]


def test_the_packaged_settings_are_the_presets():
    assert read_settings(None) == PRESETS


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("a: [1, 2", "s.yaml: it is no YAML"),
        ("equal: [1, 1, 1, 1]", "write under settings, its only key"),
        ("settings: {}", "write under settings"),
        ("settings: [1, 2]", "write under settings"),
        ("settings: {a: [1, 1]}\nmodel: x", "write under settings"),
        ("settings: {a: [1, 1, 1]}", "s.yaml: a: four numbers are needed, the weights of full, theme"),
        ("settings: {a: [1, 1, 1, true]}", "a: four numbers"),
        ("settings: {a: 1}", "a: four numbers"),
        ("settings: {a: [1, 1, 1, -1]}", "a: fusion 1,1,1,-1: every weight must be a number of at least 0"),
        ("settings: {a: [0, 0, 0, 0]}", "a: fusion 0,0,0,0: the weights sum to 0"),
    ],
)
def test_broken_settings_are_named(tmp_path, content, words):
    (tmp_path / "s.yaml").write_text(content)
    with pytest.raises(OptionError, match=words):
        read_settings(str(tmp_path / "s.yaml"))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--models", "a,,b"], "--models a,,b: give different models"),
        (["--models", "a,a"], "--models a,a: give different models"),
        (["--models", "no/such-model"], "no/such-model"),
        (["--settings", "none.yaml"], "--settings none.yaml: no such file"),
        (["--grid", "0.3"], "--grid 0.3: a step from 0.01 to 1"),
        (["--scope", "triple"], "need --pseudonymize"),
        (["--fusion", "equal"], "fusion"),
        (["--max-length", "0"], "--max-length"),
        (["--folds", "1"], "--folds 1: at least 2"),
        (["--folds", "31"], "only 30 such groups"),
        (["--views", "none.jsonl"], "none.jsonl does not exist"),
        (["--views", "t.jsonl"], "t.jsonl: no views"),
        (["--labels", "none.jsonl"], "none.jsonl does not exist"),
        (["--missing-views", "guess"], "guess"),
        (["--out", "t.jsonl/x"], "cannot write t.jsonl/x"),
    ],
)
def test_mistakes_cost_one_line(narrlit, world, tmp_path, options, words):
    (tmp_path / "t.jsonl").write_text('{"one": 1}\n')
    found = narrlit(*last_of("fuse", world[0], "--models", "x", "--views", world[1], *QUICK, *options))
    assert (found.code, found.out) == (2, "")
    assert words in found.err
    assert "Traceback" not in found.err


def test_stories_without_views_or_labels_are_refused(narrlit, world, tmp_path):
    row = {"anchor_text": "A hill. A well.", "text_a": "b", "text_b": "c"}
    (tmp_path / "t.jsonl").write_text(json.dumps(row | {"text_a_is_closer": True}) + "\n")
    (tmp_path / "bare.jsonl").write_text(json.dumps(row) + "\n")
    found = narrlit("fuse", "t.jsonl", "--models", "x", "--views", world[1])
    assert "3 of 3 different stories have no views in" in found.err
    assert "first text 1, 'A hill. A well.'" in found.err
    found = narrlit("fuse", "t.jsonl", "--models", "x")
    assert "give --views FILE" in found.err
    found = narrlit("fuse", "bare.jsonl", "--models", "x", "--views", world[1])
    assert "bare.jsonl has 1 row without a label: give --labels FILE" in found.err
