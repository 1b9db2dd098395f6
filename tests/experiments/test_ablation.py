"""narrlit ablate: overlays found, rows fitted, compared, resumed and refused."""

import json
from pathlib import Path

import numpy as np
import pytest
import yaml
from finished_fits import finished_fit, in_all_epochs
from interruptions import Killed
from json_files import read_json
from refusals import assert_refusal, refused
from results import check_result
from scoring import scores_of

from narrlit.configuration import packaged_configs, read_configs
from narrlit.data.schema import StoryTable, Triple, Triples
from narrlit.data.storyworld import StoryWorld, synthetic_triples
from narrlit.data.writers import write_triples
from narrlit.errors import OptionError
from narrlit.experiments import plan
from narrlit.experiments.ablation import AblatedSystem, ablation_result, find_overlays
from narrlit.experiments.ablation import ablate as ablate_in_python
from narrlit.experiments.fitting import parse_experiment_fit
from narrlit.experiments.run import Run
from narrlit.models.registry import load_encoder
from narrlit.results import Result
from narrlit.statistics.significance import SharedStories, mcnemar_by_story

SCALE = {"model": {"init_args": {"scale": 2.0}}, "trainer": {"logger": {"init_args": {"name": "never_seen"}}}}
TRIPLET = {"model": {"class_path": "Triplet", "init_args": {"margin": 0.2}}}
EVALUATED = 30


@pytest.fixture
def overlays(tmp_path):
    """overlays(name=content, ...): writes abl/quickstart_NAME.yaml."""
    (tmp_path / "abl").mkdir()

    def write(**contents):
        for name, content in contents.items():
            (tmp_path / f"abl/quickstart_{name}.yaml").write_text(yaml.safe_dump(content))

    return write


@pytest.fixture
def triples():
    """Candidates that are unrelated to the anchor, so that systems differ."""
    stories = StoryTable.of(t.anchor.text for t in StoryWorld(3).triples(EVALUATED + 2, "validation"))
    return Triples(stories, [Triple(i, i + 1, i + 2, a_is_closer=i % 2 == 0) for i in range(EVALUATED)])


@pytest.fixture
def ablate(narrlit, tiny, triples):
    """ablate(*options): a tiny model on t.jsonl and v.jsonl by the quickstart and abl/quickstart_*.yaml, into out."""
    write_triples("t.jsonl", synthetic_triples(StoryWorld(3).triples(16, "train"), StoryTable()))
    write_triples("v.jsonl", triples)
    files = {"train": "t.jsonl", "validation": "v.jsonl", "loading": {"batch_size": 4}}
    Path("data.yaml").write_text(yaml.safe_dump({"data": {"class_path": "FileData", "init_args": files}}))

    def run(*options, own=("--ablations", "abl/quickstart_*.yaml")):
        configs = ("configs/quickstart.yaml", "configs/hardware/cpu.yaml", "data.yaml")
        fit = [part for config in configs for part in ("--config", config)]
        model = ["--model.encoder.model", tiny(), "--model.optimization.learning_rate", "0.01"]
        return narrlit("ablate", "--out", "out", *own, *fit, *model, "--trainer.max_epochs", "2", *options)

    return run


@pytest.mark.long
@pytest.mark.slow
def test_rows_are_compared_and_resume_after_a_kill(ablate, overlays, triples, monkeypatch):
    overlays(scale=SCALE, triplet=TRIPLET)
    run_fit = plan.run_fit

    def killed(run, config):
        result = run_fit(run, config)
        if run.name == "scale":
            (run / "run.json").write_text(json.dumps({**read_json(run / "run.json"), "status": "running"}))
            (run / "left").touch()
            raise Killed
        return result

    monkeypatch.setattr(plan, "run_fit", killed)

    with pytest.raises(Killed):
        ablate()
    assert not Path("out/ablations.json").exists()

    monkeypatch.setattr(plan, "run_fit", run_fit)
    first = read_json("out/full/run.json")

    found = ablate()

    assert found.code == 0, found.err
    assert "full: already finished" in found.err
    assert "scale, fit 2 of 3: model.init_args.scale: 20.0 -> 2.0" in found.err
    assert read_json("out/full/run.json") == first
    assert not Path("out/scale/left").exists()
    assert found.out == Path("out/ablations.md").read_text()

    for name in ("full", "scale", "triplet"):
        check_answers(name, triples)
    check_report(Result.read("out/ablations.json"))

    before = Path("out/ablations.json").read_text()
    found = ablate()

    assert found.code == 0, found.err
    assert found.err.count("already finished") == 3, found.err
    assert Path("out/ablations.json").read_text() == before

    check_other_configs(ablate, overlays)
    overlays(scale=SCALE)
    check_other_data(ablate)

    assert Path("out/ablations.json").read_text() == before


def check_answers(name, triples):
    """The recorded answers of the best epoch are those of the best checkpoint when it is loaded."""
    scores = scores_of(load_encoder(f"out/{name}", long="truncate"), triples)
    answers = scores[:, 0] > scores[:, 1]
    labels = np.array([triple.a_is_closer for triple in triples])
    wrong = np.flatnonzero(answers != labels).tolist()
    assert np.flatnonzero(~right(name, "best_epoch")).tolist() == wrong


def check_report(result):
    assert list(dict.fromkeys(result.figures["system"])) == ["full", "scale", "triplet"]
    systems = {entry["system"]: entry for entry in result.settings["systems"]}
    assert systems["full"]["overlay"] is None
    assert systems["scale"]["overlay"] == "abl/quickstart_scale.yaml"
    assert systems["scale"]["changes"] == ["model.init_args.scale: 20.0 -> 2.0"]
    assert [(fit["num_evaluations"], fit["flags"]) for fit in result.settings["fits"]] == [(2, [])] * 3
    for name in systems:
        record = read_json(f"out/{name}/run.json")
        best = result.estimate(name, "accuracy_best_epoch")
        assert best.value == pytest.approx(record["best"]["accuracy"])
        assert [best.low, best.high] == pytest.approx(record["best"]["interval"])
        assert best.method == "by_story"
        last = result.estimate(name, "accuracy_last_epoch")
        assert last.value == pytest.approx(record["validations"][-1]["accuracy"])
    neighbors = SharedStories([[i, i + 1, i + 2] for i in range(EVALUATED)])  # triples share stories with the next
    differences = result.differences.set_index(["system", "metric"])
    for name in ("scale", "triplet"):
        ours, theirs = right(name), right("full")
        last = differences.loc[(name, "accuracy_last_epoch")]
        assert last["p"] == pytest.approx(mcnemar_by_story(ours, theirs, neighbors))
        assert last["value"] == pytest.approx(ours.mean() - theirs.mean())
    assert last["lost"] > 0
    assert last["won"] > 0


def right(name, metric="last_epoch"):
    answers = Run.read(f"out/{name}").answers()
    return answers.loc[answers["metric"] == metric, "right"].to_numpy(bool)


def check_other_configs(ablate, overlays):
    found = ablate("--model.init_args.optimization.warmup", "0.5")
    change = "model.init_args.optimization.warmup: 0.1 -> 0.5"
    assert_refusal(found.error, "other_configuration", path="out/full.yaml", change=change)
    assert "choose another --out or remove out/full.yaml" in found.err
    overlays(scale={"model": {"init_args": {"scale": 3.0}}})
    found = ablate()
    change = "model.init_args.scale: 2.0 -> 3.0"
    assert_refusal(found.error, "other_configuration", path="out/scale.yaml", change=change)
    kept = Path("out/scale.yaml").read_text()
    Path("out/scale.yaml").unlink()  # the config alone does not make way for another one's run
    found = ablate()
    assert found.code == 2
    assert_refusal(found.error, "output_not_empty", path="out/scale")
    Path("out/scale.yaml").write_text(kept)


def check_other_data(ablate):
    for name in ("t.jsonl", "v.jsonl"):
        kept = Path(name).read_text()
        Path(name).write_text(kept.replace("the", "a", 1))
        found = ablate()
        assert found.code == 2, found.err
        assert_refusal(found.error, "file_of_fit_changed", folder="out/full", path=name)
        Path(name).write_text(kept)
    answers = Path("out/triplet/validation_answers.json")
    answers.write_text(answers.read_text().replace('"triples": "', '"triples": "0'))
    assert_refusal(ablate().error, "triples_of_fit_changed", folder="out/triplet")


@pytest.mark.parametrize(
    ("options", "content", "code", "values"),
    [
        (["--ckpt_path", "x.ckpt"], SCALE, "broken_checkpoint", {"path": "x.ckpt"}),
        (["--trainer.limit_val_batches", "1"], SCALE, "unusable_setting", {"option": "trainer.limit_val_batches"}),
        (["--data.validation", "null"], SCALE, "no_validation_triples", {"purpose": "an ablation"}),
        (
            [],
            {"data": {"init_args": {"validation": "t.jsonl"}}},
            "overlay_of_other_triples",
            {"path": "quickstart_bad.yaml"},
        ),
        ([], {"model": {"init_args": {"scales": 20.0}}}, "invalid_settings", {}),
        (
            [],
            {"trainer": {"check_val_every_n_epoch": 2}},
            "unusable_setting",
            {"option": "trainer.check_val_every_n_epoch"},
        ),
    ],
)
def test_mistakes_cost_one_line_and_no_fit(ablate, overlays, options, content, code, values):
    overlays(bad=content)
    found = ablate(*options)
    assert found.code == 2
    assert_refusal(found.error, code, **values)
    assert "Traceback" not in found.err
    assert not Path("out").exists()


def test_a_system_without_ablations_names_the_packaged_ones(ablate):
    found = ablate(own=())
    patterns = ["configs/ablations/quickstart_*.yaml"]
    assert_refusal(found.error, "no_overlay", system="quickstart", patterns=patterns)
    assert "ablations/comhis_identity.yaml" in found.error.values["known"]


def refuse(run, config):
    raise OptionError("fit_without_folder")


def test_an_overlay_that_changes_nothing_is_left_out(ablate, overlays, monkeypatch):
    overlays(same={"model": {"init_args": {"scale": 20.0}}}, scale=SCALE)
    monkeypatch.setattr(plan, "run_fit", refuse)
    found = ablate()
    assert "same is left out: abl/quickstart_same.yaml changes nothing compared with full" in found.err
    assert "full, fit 1 of 2: the unchanged config" in found.err


def test_the_baseline_of_hits_learns_from_the_triples_own_negatives(tiny):
    settings = {"model.encoder.model": tiny(), "model.encoder.dtype": "float32", "data.train": "t.jsonl"}
    settings["model.encoder.gradient_checkpointing"] = False
    layers = read_configs(["configs/hits.yaml", settings, "ablations/hits_baseline.yaml"])
    config, _ = parse_experiment_fit(layers, "a test")

    assert config["model"]["class_path"] == "narrlit.objectives.Triplet"
    assert config["model"]["init_args"]["negatives"] == "triple"
    assert config["trainer"]["callbacks"] is None


def write(path, text="model: {init_args: {mask: false}}"):
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(text)


def test_by_default_overlays_are_the_systems_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = find_overlays("hits")
    assert set(found) >= {"baseline", "kd_only", "mask_only", "multi_negative"}
    assert {Path(path).parent for path in found.values()} == {packaged_configs() / "ablations"}

    views = find_overlays("ttda704")
    assert set(views) == {"as_published", "no_alignment"}  # those of ttda704_track_a are another system's


def test_files_and_patterns_are_found_here_first_then_in_the_package(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write("mine/hits_a.yaml")
    write("mine/b.yaml")
    named = ["mine/*.yaml", "configs/ablations/hits_kd_only.yaml", "ablations/hits_m*.yaml"]

    assert list(find_overlays("hits", named)) == ["b", "a", "kd_only", "mask_only", "multi_negative"]

    write("configs/ablations/hits_other.yaml")
    assert list(find_overlays("hits")) == ["other"]
    assert list(find_overlays("hits", [Path("mine").resolve() / "*.yaml"])) == ["b", "a"]


@pytest.mark.parametrize(
    ("named", "code", "values"),
    [
        (["none.yaml"], "mistyped_config", {"option": "ablations", "path": "none.yaml"}),
        (["none_*.yaml"], "no_overlay", {"system": "hits", "patterns": ["none_*.yaml"]}),
        (["x/a.yaml", "x/hits_a.yaml"], "two_rows", {"path": "hits_a.yaml", "name": "a"}),
        (["x/hits_full.yaml"], "two_rows", {"name": "full"}),
    ],
)
def test_overlays_without_a_row_are_named(tmp_path, monkeypatch, named, code, values):
    monkeypatch.chdir(tmp_path)
    for name in ("a", "hits_a", "hits_full"):
        write(f"x/{name}.yaml")
    with refused(code, **values):
        find_overlays("hits", named)


def test_the_first_config_file_names_the_system(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    content = {"trainer": {"max_epochs": 2}}
    with refused("no_system_of_ablations"):
        ablate_in_python(content, out="out")
    with refused("no_overlay", system="full"):
        ablate_in_python(content, out="out", ablations=["none_*.yaml"])
    with refused("no_overlay", system="mine"):
        ablate_in_python([content, "x/mine.yaml", "configs/hits.yaml"], out="out", ablations=["none_*.yaml"])


def test_each_row_is_compared_with_the_full_system(tmp_path):
    wrong = {"full": [0, 1, 2], "a": [0, 3, 4, 5]}
    systems = [AblatedSystem(name, None, {}, [f"x: {name}"], {}, "") for name in wrong]
    fits = [finished_fit(tmp_path, name, in_all_epochs(wrong[name]), system=name) for name in wrong]
    result = ablation_result(tmp_path, systems, fits)
    assert result.settings["systems"][1] == {"system": "a", "overlay": None, "changes": ["x: a"]}
    best = result.differences.iloc[1]
    assert best["metric"] == "accuracy_best_epoch"
    assert (best["lost"], best["won"], best["p"], best["test"]) == (3, 2, 1.0, "mcnemar")
    assert best["value"] == pytest.approx(-0.1)
    assert next(note for note in result.notes if note.code == "single_fits").values == {"system": "full", "seed": 42}
    check_result(result, tmp_path / "out")
