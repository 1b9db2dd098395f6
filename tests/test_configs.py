"""Every config can be instantiated, without weights, and says what it is."""

from pathlib import Path

import pytest
import yaml

from narrlit.commands.lightning_cli import ParsedFit
from narrlit.commands.search_space import as_options, read_space
from narrlit.commands.training import find_config, packaged_configs
from narrlit.errors import OptionError

ROOT = packaged_configs()
SYSTEMS = ["quickstart.yaml", "quickstart_hits.yaml", "nlp_fsdm.yaml", "hits.yaml", "baselines/triplet.yaml"]
ABLATIONS = [f"ablations/hits_{name}.yaml" for name in ("baseline", "multi_negative", "mask_only", "kd_only")]
ENCODERS = ("minilm", "bge_large", "mpnet", "qwen3_8b", "qwen3_8b_qlora", "tiny")
BACKBONES = [f"backbones/{name}.yaml" for name in ENCODERS]
SPACES = {"spaces/triplet.yaml": "baselines/triplet.yaml"}
HARDWARE = [f"hardware/{name}.yaml" for name in ("cpu", "gpu", "ddp", "fsdp")]


def leaves(value):
    if isinstance(value, dict):
        for inner in value.values():
            yield from leaves(inner)
    else:
        yield value


def parse(monkeypatch, *configs):
    """What `narrlit fit` would instantiate, up to the trainer (which asks for the hardware)."""
    from narrlit.commands.lightning_cli import StageCLI

    class OnlyParse(StageCLI):
        def instantiate_trainer(self, **kwargs):
            return None

        def _run_subcommand(self, subcommand):
            return None

    arguments = [part for config in configs for part in ("--config", str(ROOT / config))]
    monkeypatch.setattr("sys.argv", ["narrlit", "fit", *arguments])
    return OnlyParse.run("fit")


def test_no_config_is_left_out():
    found = {str(path.relative_to(ROOT)) for path in ROOT.rglob("*.yaml")}
    assert found == {*SYSTEMS, *ABLATIONS, *BACKBONES, *HARDWARE, *SPACES}


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_system_is_instantiated_without_weights(monkeypatch, system):
    cli = parse(monkeypatch, system)
    written = yaml.safe_load((ROOT / system).read_text())
    assert type(cli.model).__name__ == written["model"]["class_path"]
    assert type(cli.datamodule).__name__ == written["data"]["class_path"]
    assert cli.model.encoder_config.model == written["model"]["init_args"]["encoder"]["model"]
    assert cli.model.optimization.learning_rate == written["model"]["init_args"]["optimization"]["learning_rate"]
    assert not list(cli.model.parameters())


@pytest.mark.parametrize("overlay", BACKBONES)
def test_a_backbone_changes_the_encoder_and_nothing_else(monkeypatch, overlay):
    plain, changed = parse(monkeypatch, "nlp_fsdm.yaml"), parse(monkeypatch, "nlp_fsdm.yaml", overlay)
    written = yaml.safe_load((ROOT / overlay).read_text())["model"]["init_args"]["encoder"]
    kept = changed.model.encoder_config.as_dict()
    for name, value in written.items():
        assert kept[name].items() >= value.items() if isinstance(value, dict) else kept[name] == value
    assert changed.model.encoder_config.prompts == plain.model.encoder_config.prompts
    assert changed.model.optimization == plain.model.optimization
    assert changed.datamodule.loading == plain.datamodule.loading


@pytest.mark.parametrize("overlay", HARDWARE)
def test_hardware_changes_the_trainer_and_nothing_else(monkeypatch, overlay):
    changed = parse(monkeypatch, "quickstart.yaml", overlay)
    written = yaml.safe_load((ROOT / overlay).read_text())
    assert set(written) == {"trainer"}
    for name in ("accelerator", "devices", "precision"):
        assert changed.config["fit"]["trainer"][name] == written["trainer"][name]
    assert changed.config["fit"]["trainer"]["max_epochs"] == 2


def test_overlays_hold_no_lists():
    for overlay in (*ABLATIONS, *BACKBONES, *HARDWARE):
        assert not any(isinstance(leaf, list) for leaf in leaves(yaml.safe_load((ROOT / overlay).read_text())))


@pytest.mark.parametrize(("space", "system"), SPACES.items())
def test_a_search_space_is_of_options_of_its_system(monkeypatch, space, system):
    given = parse(monkeypatch, system).config["fit"]
    for name, found in read_space(ROOT / space).items():
        for value in found.probes:
            (option,) = as_options({name: value})
            monkeypatch.setattr("sys.argv", ["narrlit", "fit", "--config", str(ROOT / system), option])
            assert ParsedFit.run("fit").config["fit"][name] == value
        assert given[name] in found.probes or found.probes[0] <= given[name] <= found.probes[-1]


@pytest.mark.parametrize("name", [*SYSTEMS, *ABLATIONS, *BACKBONES, *HARDWARE, *SPACES])
def test_a_header_says_what_it_is(name):
    header = [line for line in (ROOT / name).read_text().splitlines() if line.startswith("#")]
    assert header
    assert not any("TO BE" in line for line in header)
    if name in SYSTEMS or name in SPACES:
        for word in ("Needs:", "Run:", "Expect:"):
            assert any(word in line for line in header), word


def test_configs_are_found_in_the_package_from_anywhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert Path(find_config("configs/quickstart.yaml")) == ROOT / "quickstart.yaml"
    assert Path(find_config("backbones/minilm.yaml")) == ROOT / "backbones/minilm.yaml"
    (tmp_path / "quickstart.yaml").write_text("{}")
    assert find_config("quickstart.yaml") == "quickstart.yaml"
    with pytest.raises(OptionError, match="nlp_fsdm"):
        find_config("configs/none.yaml")
    with pytest.raises(OptionError, match=r"--space none.yaml: no such file; with narrlit come spaces.triplet.yaml"):
        find_config("none.yaml", "--space")


def test_hits_has_the_papers_values(monkeypatch):
    cli = parse(monkeypatch, "hits.yaml")
    objective, encoder = cli.model, cli.model.encoder_config
    assert (encoder.model, encoder.pooling, encoder.max_length) == ("Qwen/Qwen3-Embedding-8B", "last", 1024)
    assert (encoder.lora.rank, encoder.lora.alpha, encoder.lora.dropout) == (32, 64, 0.1)
    assert encoder.gradient_checkpointing
    assert len(encoder.prompts.story) > 50
    assert encoder.prompts.anchor is encoder.prompts.candidate is None  # one instruction for every role
    plan = objective.optimization
    assert (plan.optimizer, plan.learning_rate, plan.warmup) == ("adamw", 5e-5, 0)
    assert (objective.temperature, objective.mask_margin) == (0.09, -0.05)
    follow = objective.distillation
    assert (follow.temperature, follow.first_weight, follow.last_weight, follow.space) == (0.15, 0.7, 0.05, "cosine")
    assert not objective.use_triple_negative
    assert cli.datamodule.loading.batch_size == 8
    trainer = cli.config["fit"]["trainer"]
    (promotion,) = [c for c in trainer["callbacks"] if "TeacherPromotion" in c["class_path"]]
    assert (trainer["max_epochs"], promotion["init_args"]["rounds"]) == (15, 3)
    assert cli.config["fit"]["seed_everything"] == 42


def test_ablations_change_what_they_name(monkeypatch):
    names = {overlay: parse(monkeypatch, "hits.yaml", overlay) for overlay in ABLATIONS}
    baseline, multi_negative, mask_only, kd_only = names.values()
    assert type(baseline.model).__name__ == "Triplet"
    assert baseline.model.margin == 0.1
    assert (mask_only.model.mask, mask_only.model.distill) == (True, False)
    assert (kd_only.model.mask, kd_only.model.distill) == (False, True)
    for cli in (baseline, multi_negative):
        assert cli.config["fit"]["trainer"]["callbacks"] is None
        assert cli.config["fit"]["trainer"]["max_epochs"] == 5
    for overlay, cli in names.items():
        assert cli.model.encoder_config.lora.rank == 32
        assert cli.model.optimization.learning_rate == 5e-5
        assert cli.config["fit"]["trainer"]["logger"]["init_args"]["name"] == Path(overlay).stem


def test_rounds_can_be_set_on_the_command_line(monkeypatch):
    from narrlit.commands.lightning_cli import StageCLI

    monkeypatch.setattr(StageCLI, "_run_subcommand", lambda *_: None)
    options = ["--trainer.callbacks.init_args.rounds", "2", "--trainer.max_epochs", "4", "--trainer.accelerator", "cpu"]
    monkeypatch.setattr("sys.argv", ["narrlit", "fit", "--config", str(ROOT / "hits.yaml"), *options])
    cli = StageCLI.run("fit")
    assert [c.rounds for c in cli.trainer.callbacks if type(c).__name__ == "TeacherPromotion"] == [2]
