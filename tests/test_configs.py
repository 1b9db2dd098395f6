"""Every config can be instantiated, without weights, and says what it is."""

from pathlib import Path

import pytest
import yaml

from narrlit.commands.training import find_config, packaged_configs
from narrlit.errors import OptionError

ROOT = packaged_configs()
SYSTEMS = ["quickstart.yaml", "nlp_fsdm.yaml", "baselines/triplet.yaml"]
BACKBONES = [f"backbones/{name}.yaml" for name in ("minilm", "bge_large", "mpnet", "qwen3_8b", "tiny")]
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
    assert found == {*SYSTEMS, *BACKBONES, *HARDWARE}


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
    for name, value in written.items():
        assert getattr(changed.model.encoder_config, name) == value
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
    for overlay in (*BACKBONES, *HARDWARE):
        assert not any(isinstance(leaf, list) for leaf in leaves(yaml.safe_load((ROOT / overlay).read_text())))


@pytest.mark.parametrize("name", [*SYSTEMS, *BACKBONES, *HARDWARE])
def test_a_header_says_what_it_is(name):
    header = [line for line in (ROOT / name).read_text().splitlines() if line.startswith("#")]
    assert header
    if name in SYSTEMS:
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
