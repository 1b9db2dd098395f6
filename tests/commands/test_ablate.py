"""narrlit ablate: rows run, compared, resumed and refused."""

import json
import os
from pathlib import Path

import pytest
import yaml
from run_helpers import KillRun

from narrlit.data.records import Triple
from narrlit.data.storyworld import StoryWorld, judged_triples
from narrlit.data.writers import write_triples
from narrlit.metrics.statistics import mcnemar, wilson_interval
from narrlit.models.embedding import cosine_scores
from narrlit.models.source import load_encoder

pytestmark = pytest.mark.slow

SCALE = {"model": {"init_args": {"scale": 2.0}}, "trainer": {"logger": {"init_args": {"name": "never_seen"}}}}
TRIPLET = {"model": {"class_path": "Triplet", "init_args": {"margin": 0.2}}}
JUDGED = 30


@pytest.fixture
def overlays(tmp_path):
    """overlays(name=content, ...): writes abl/quickstart_NAME.yaml."""
    (tmp_path / "abl").mkdir()

    def write(**contents):
        for name, content in contents.items():
            Path(f"abl/quickstart_{name}.yaml").write_text(yaml.safe_dump(content))

    return write


@pytest.fixture
def triples():
    """Candidates that have nothing to do with the anchor, so that systems find different ones."""
    stories = [triple.anchor for triple in judged_triples(StoryWorld(3).triples(JUDGED + 2, "validation"))]
    return [Triple(*stories[i : i + 3], a_is_closer=i % 2 == 0) for i in range(JUDGED)]


@pytest.fixture
def ablate(narrlit, tiny, triples, monkeypatch):
    """ablate(*options): a tiny model on t.jsonl and v.jsonl by the quickstart and abl/quickstart_*.yaml, into out."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    paths = [str(Path(__file__).parents[1] / "helpers"), *filter(None, [os.environ.get("PYTHONPATH")])]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(paths))
    write_triples("t.jsonl", judged_triples(StoryWorld(3).triples(16, "train")))
    write_triples("v.jsonl", triples)
    files = {"train": "t.jsonl", "validation": "v.jsonl", "loading": {"batch_size": 4}}
    Path("data.yaml").write_text(yaml.safe_dump({"data": {"class_path": "FileData", "init_args": files}}))

    def run(*options, own=("--ablations", "abl/quickstart_*.yaml")):
        configs = ("configs/quickstart.yaml", "configs/hardware/cpu.yaml", "data.yaml")
        fit = [part for config in configs for part in ("--config", config)]
        model = ["--model.encoder.model", tiny(), "--model.optimization.learning_rate", "0.01"]
        return narrlit("ablate", "--out", "out", *own, *fit, *model, "--trainer.max_epochs", "2", *options)

    return run


def read(path):
    return json.loads(Path(path).read_text())


def test_rows_run_are_compared_and_go_on_after_a_kill(ablate, overlays, triples):
    overlays(scale=SCALE, triplet=TRIPLET)
    killer = [f"--trainer.callbacks+=run_helpers.{KillRun.__name__}", "--trainer.callbacks.file=die"]
    Path("die").write_text("scale")
    found = ablate(*killer)
    assert found.code == 2
    assert "scale failed (exit code -9)" in found.err.strip().splitlines()[-1]
    assert "\nfull, row 1 of 3: the config as given\n" in found.err
    assert "\nscale, row 2 of 3: abl/quickstart_scale.yaml\n" in found.err
    assert sorted(path.name for path in Path("out").iterdir()) == [
        *("full", "full.yaml", "scale", "scale.yaml", "triplet.yaml")
    ]
    assert (read("out/full/run.json")["status"], read("out/scale/run.json")["status"]) == ("finished", "running")
    Path("die").unlink()
    Path("out/scale/left").touch()
    first = read("out/full/run.json")

    found = ablate(*killer)
    assert found.code == 0, found.err
    assert "full: finished before" in found.err
    assert read("out/full/run.json") == first
    assert not Path("out/scale/left").exists()
    assert found.out == Path("out/ablations.md").read_text()
    for name in ("full", "scale", "triplet"):
        check_config(name)
        check_answers(name, triples)
    check_report(read("out/ablations.json"), found.out)

    before = Path("out/ablations.json").read_text()
    found = ablate(*killer)
    assert (found.code, found.err.count("finished before")) == (0, 3), found.err
    assert Path("out/ablations.json").read_text() == before
    check_other_data(ablate, killer)
    check_other_configs(ablate, overlays, killer)
    assert Path("out/ablations.json").read_text() == before


def check_config(name):
    config = yaml.safe_load(Path(f"out/{name}/config.yaml").read_text())
    kind, init = config["model"]["class_path"].rpartition(".")[2], config["model"]["init_args"]
    found = (kind, init.get("scale"), init.get("margin"))
    expected = {"full": ("Ranking", 20, None), "scale": ("Ranking", 2, None), "triplet": ("Triplet", None, 0.2)}
    assert found == expected[name]
    assert init["optimization"]["learning_rate"] == 0.01  # a class that an overlay replaces keeps what both have
    assert config["data"]["init_args"]["validation"] == "v.jsonl"


def check_answers(name, triples):
    """The answers of the best look are those that the best checkpoint gives when it is loaded anew."""
    scores, _ = cosine_scores(load_encoder(f"out/{name}"), triples)
    wrong = [i for i, ((a, b), triple) in enumerate(zip(scores, triples, strict=True)) if (a > b) != triple.a_is_closer]
    record, answers = read(f"out/{name}/run.json"), read(f"out/{name}/validation_answers.json")
    (kept,) = [look["wrong"] for look in answers["looks"] if look["step"] == record["best"]["step"]]
    assert kept == wrong
    assert [JUDGED - len(look["wrong"]) for look in answers["looks"]] == [v["correct"] for v in record["validations"]]


def check_report(found, text):
    full, scale, triplet = found["systems"]
    assert [entry["system"] for entry in found["systems"]] == ["full", "scale", "triplet"]
    assert (full["overlay"], scale["overlay"]) == (None, "abl/quickstart_scale.yaml")
    assert full["against_full"] is None
    for entry in found["systems"]:
        record = read(f"out/{entry['system']}/run.json")
        assert entry["best_epoch"]["accuracy"] == record["best"]["accuracy"]
        assert entry["last_epoch"]["accuracy"] == record["validations"][-1]["accuracy"]
        assert entry["best_epoch"]["interval"] == list(wilson_interval(record["best"]["correct"], JUDGED))
        assert (entry["looks"], entry["marks"]) == (2, [])
    for entry in (scale, triplet):
        ours, theirs = (right(name, 1) for name in (entry["system"], "full"))
        found_last = entry["against_full"]["last_epoch"]
        assert found_last["p"] == mcnemar(ours, theirs)
        assert found_last["difference"] == pytest.approx((sum(ours) - sum(theirs)) / JUDGED)
    last = triplet["against_full"]["last_epoch"]
    assert last["lost"] > 0
    assert last["won"] > 0
    assert text.splitlines()[2].startswith(f"| full | {JUDGED} | {full['best_epoch']['accuracy']:.3f} [")


def right(name, epoch):
    (look,) = [look for look in read(f"out/{name}/validation_answers.json")["looks"] if look["epoch"] == epoch]
    return [place not in look["wrong"] for place in range(JUDGED)]


def check_other_configs(ablate, overlays, killer):
    """Another config and another overlay, each by name and before any fit."""
    found = ablate(*killer, "--model.init_args.optimization.warmup", "0.5")
    assert found.code == 2
    assert "out/full.yaml is of another config (model.init_args.optimization.warmup: 0.1 there" in found.err
    overlays(scale={"model": {"init_args": {"scale": 3.0}}})
    found = ablate(*killer)
    assert found.code == 2
    assert "out/scale.yaml is of another config (model.init_args.scale: 2.0 there, 3.0 here)" in found.err
    Path("out/scale.yaml").unlink()  # the config alone does not make way for another one's run
    found = ablate(*killer)
    assert (found.code, "out/scale exists and is not empty" in found.err) == (2, True)


def check_other_data(ablate, killer):
    """Other data, each by name; the labels apart from the stories would be seen by the answers' digest."""
    for name in ("t.jsonl", "v.jsonl"):
        kept = Path(name).read_text()
        Path(name).write_text(kept.replace("the", "a", 1))
        found = ablate(*killer)
        assert found.code == 2
        assert f"out/full is of other data, {name} changed since" in found.err.strip().splitlines()[-1]
        Path(name).write_text(kept)
    answers = Path("out/triplet/validation_answers.json")
    answers.write_text(answers.read_text().replace('"triples": "', '"triples": "0'))
    found = ablate(*killer)
    assert "out/triplet is of other data, the validation triples or their labels changed since" in found.err
    answers.unlink()
    assert "out/triplet/validation_answers.json is gone or broken" in ablate(*killer).err


MISTAKES = [
    (["--ckpt_path", "x.ckpt"], "x.ckpt: no such file"),
    (["--trainer.limit_val_batches", "1"], "--trainer.limit_val_batches has no place in an ablation"),
    (["--data.validation", "null"], "an ablation judges by validation triples: give --data.validation FILE"),
    (["--model.scales", "1"], "scales"),
]


@pytest.mark.parametrize(("options", "words"), MISTAKES)
def test_mistakes_cost_one_line_and_no_fit(ablate, overlays, options, words):
    overlays(scale=SCALE, triplet=TRIPLET)
    check_refused(ablate(*options), words)


def check_refused(found, words):
    assert found.code == 2
    assert words in found.err.strip().splitlines()[-1]
    assert "Traceback" not in found.err
    assert not Path("out").exists()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ({"data": {"init_args": {"validation": "t.jsonl"}}}, "bad.yaml changes the validation triples"),
        ({"model": {"init_args": {"scale": 20.0}}}, "bad.yaml changes nothing of the row full"),
        ({"model": {"init_args": {"scales": 20.0}}}, "scales"),
        ({"trainer": {"check_val_every_n_epoch": 2}}, "--trainer.check_val_every_n_epoch has no place"),
        ([1], "bad.yaml: it sets nothing"),
    ],
)
def test_an_overlay_that_makes_no_row_is_refused_before_the_first_fit(ablate, overlays, content, words):
    overlays(bad=content)
    check_refused(ablate(), words)


def test_a_system_without_ablations_is_told_what_there_is(ablate):
    check_refused(ablate(own=()), "there is no configs/ablations/quickstart_*.yaml: name overlays by --ablations")
    check_refused(ablate(own=()), "with narrlit come ablations/comhis_identity.yaml, ")


def test_help_is_of_the_command(narrlit):
    found = narrlit("ablate", "--help")
    assert (found.code, "--ablations" in found.out, "trainer" in found.out) == (0, True, False)
