"""Every config can be instantiated, without weights, and says what it is."""

from pathlib import Path

import pytest
import yaml

from narrlit.commands.lightning_cli import ParsedFit
from narrlit.commands.training import find_config, packaged_configs
from narrlit.errors import OptionError
from narrlit.experiments.tuning import as_options, probes, read_space

ROOT = packaged_configs()
MENDEL292 = [f"mendel292{name}.yaml" for name in ("", "_linear", "_mlp", "_inductive", "_transductive")]
SYSTEMS = ["quickstart.yaml", "quickstart_hits.yaml", "nlp_fsdm.yaml", "hits.yaml", "comhis.yaml", *MENDEL292]
SYSTEMS += ["ttda704.yaml", "quickstart_ttda704.yaml", "ttda704_track_a.yaml"]
SYSTEMS += ["baselines/triplet.yaml", "baselines/frozen.yaml"]
HITS = [f"ablations/hits_{name}.yaml" for name in ("baseline", "multi_negative", "mask_only", "kd_only")]
COMHIS = [f"ablations/comhis_{name}.yaml" for name in ("identity", "no_hard", "no_synthetic", "mined_validation")]
VIEWS = [f"ablations/ttda704_{name}.yaml" for name in ("as_published", "no_alignment")]
TRACK_A = [f"ablations/ttda704_track_a_{name}.yaml" for name in ("raw", "adaptive_margin")]
ABLATIONS = [*HITS, *COMHIS, *VIEWS, *TRACK_A]
ENCODERS = ("minilm", "bge_large", "mpnet", "qwen3_8b", "qwen3_8b_qlora", "tiny")
BACKBONES = [f"backbones/{name}.yaml" for name in ENCODERS]
SPACES = {"spaces/triplet.yaml": "baselines/triplet.yaml", "spaces/comhis.yaml": "comhis.yaml"}
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
    for name, found in read_space(str(ROOT / space))[1].items():
        for value in probes(found):
            (option,) = as_options({name: value})
            monkeypatch.setattr("sys.argv", ["narrlit", "fit", "--config", str(ROOT / system), option])
            assert ParsedFit.run("fit").config["fit"][name] == value
        assert given[name] in probes(found) or probes(found)[0] <= given[name] <= probes(found)[-1]


@pytest.mark.parametrize("name", [*SYSTEMS, *ABLATIONS, *BACKBONES, *HARDWARE, *SPACES])
def test_a_header_says_what_it_is(name):
    header = [line for line in (ROOT / name).read_text().splitlines() if line.startswith("#")]
    assert header
    assert not any("TO BE" in line for line in header)
    if name in (*SYSTEMS, *SPACES):
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
    spaces = ", ".join(sorted(SPACES))
    with pytest.raises(OptionError, match=f"--space none.yaml: no such file; with narrlit come {spaces}$"):
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
    names = {overlay: parse(monkeypatch, "hits.yaml", overlay) for overlay in HITS}
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


def test_comhis_has_the_papers_values(monkeypatch):
    cli = parse(monkeypatch, "comhis.yaml")
    objective, plan, hard = cli.model, cli.model.optimization, cli.model.hard
    assert objective.encoder_config.model == "Qwen/Qwen3-Embedding-8B"
    assert (objective.margin, hard.share, hard.weight, hard.mine_validation) == (0.2, 0.2, 2.0, False)
    assert (plan.optimizer, plan.learning_rate, plan.weight_decay, plan.warmup) == ("adamw", 1e-4, 5e-4, 0)
    assert (plan.decay, cli.datamodule.loading.batch_size) == ("none", 32)
    trainer = cli.config["fit"]["trainer"]
    (stopping,) = trainer["callbacks"]
    assert (trainer["max_epochs"], stopping["init_args"]["patience"]) == (30, 15)


def test_comhis_ablations_change_what_they_name(monkeypatch):
    found = {overlay: parse(monkeypatch, "comhis.yaml", overlay) for overlay in COMHIS}
    identity, no_hard, no_synthetic, mined = found.values()
    assert (identity.model.noise, identity.model.optimization.learning_rate) == (0.0, 0.0)
    assert no_hard.model.hard.weight == 1
    assert no_synthetic.datamodule.extra.synthetic is None
    assert mined.model.hard.mine_validation
    for overlay, cli in found.items():
        assert cli.model.margin == 0.2
        assert cli.config["fit"]["trainer"]["logger"]["init_args"]["name"] == Path(overlay).stem


@pytest.mark.parametrize("name", MENDEL292)
def test_mendel292_has_the_papers_values(monkeypatch, name):
    cli = parse(monkeypatch, name)
    objective, plan = cli.model, cli.model.optimization
    assert (objective.encoder_config.model, objective.encoder_config.max_length) == ("minilm", 256)
    assert (cli.datamodule.loading.batch_size, plan.optimizer) == (64, "adam")
    if name in ("mendel292_linear.yaml", "mendel292_mlp.yaml"):
        assert objective.hidden == ([512, 512] if "mlp" in name else [])
        assert (objective.output, objective.margin, plan.learning_rate) == (256, 1.0, 1e-3)
        return
    labelled = name != "mendel292.yaml"
    assert (plan.learning_rate, cli.config["fit"]["trainer"]["max_epochs"]) == (1.4e-4, 10)
    assert (objective.bilstm.hidden, objective.bilstm.layers, objective.sizes) == (128, 2, (128, 64, 64))
    assert objective.margin == (1.002 if labelled else 1.038)
    assert objective.aspects.labels == ("positional" if labelled else "none")
    assert objective.transductive == (name == "mendel292_transductive.yaml")
    if labelled:
        aspects = objective.aspects
        assert (objective.triplet_weight, aspects.weight, aspects.unlabelled_weight) == (1.437, 0.974, 0.355)
        assert (aspects.weights, aspects.margin) == ((0.5, 0.3, 0.2), 0.537)
        assert (aspects.clusters.theme, aspects.clusters.action, aspects.clusters.outcome) == (8, 5, 4)


def test_ttda704_has_the_papers_values(monkeypatch):
    cli = parse(monkeypatch, "ttda704.yaml")
    objective, plan = cli.model, cli.model.optimization
    assert objective.encoder_config.model == "sentence-transformers/all-mpnet-base-v2"
    assert (objective.encoder_config.pooling, objective.encoder_config.max_length) == ("mean", 512)
    assert objective.fusion.weights == (0.5, 0.1, 0.2, 0.2)
    assert (objective.hidden, objective.temperature, objective.alignment) == (512, 0.07, 0.5)
    assert objective.variant == "as_written"
    assert (plan.optimizer, plan.learning_rate, plan.weight_decay) == ("adamw", 2e-5, 1e-5)
    loading, trainer = cli.datamodule.loading, cli.config["fit"]["trainer"]
    assert (loading.batch_size, loading.samples_per_epoch, loading.pseudonyms.backend) == (32, None, "none")
    assert (trainer["max_epochs"], trainer["gradient_clip_val"]) == (15, 1.0)
    published, contrasts = (parse(monkeypatch, "ttda704.yaml", overlay).model for overlay in VIEWS)
    assert (published.variant, published.alignment) == ("as_published", 0.5)
    assert (contrasts.variant, contrasts.alignment) == ("as_written", 0)


def test_ttda704_track_a_has_the_papers_values(monkeypatch):
    cli = parse(monkeypatch, "ttda704_track_a.yaml")
    objective, plan = cli.model, cli.model.optimization
    assert (objective.encoder_config.frozen_layers, objective.encoder_config.max_length) == (0.4, 512)
    assert (objective.distance, objective.margin, objective.maximum_margin) == ("cosine", 0.3, None)
    assert (plan.learning_rate, plan.weight_decay, plan.warmup, plan.decay) == (2e-5, 0.01, 0.1, "linear")
    loading = cli.datamodule.loading
    assert (loading.batch_size, loading.pseudonyms.backend, loading.pseudonyms.scope) == (16, "spacy", "triple")
    assert cli.config["fit"]["trainer"]["max_epochs"] == 5
    raw, adaptive = (parse(monkeypatch, "ttda704_track_a.yaml", overlay) for overlay in TRACK_A)
    assert raw.datamodule.loading.pseudonyms.backend == "none"
    assert raw.model.distance == "cosine"
    assert (adaptive.model.distance, adaptive.model.margin, adaptive.model.maximum_margin) == (
        "squared_euclidean",
        0.3,
        1.5,
    )
    assert adaptive.datamodule.loading.pseudonyms.backend == "spacy"


def test_rounds_can_be_set_on_the_command_line(monkeypatch):
    from narrlit.commands.lightning_cli import StageCLI

    monkeypatch.setattr(StageCLI, "_run_subcommand", lambda *_: None)
    options = ["--trainer.callbacks.init_args.rounds", "2", "--trainer.max_epochs", "4", "--trainer.accelerator", "cpu"]
    monkeypatch.setattr("sys.argv", ["narrlit", "fit", "--config", str(ROOT / "hits.yaml"), *options])
    cli = StageCLI.run("fit")
    assert [c.rounds for c in cli.trainer.callbacks if type(c).__name__ == "TeacherPromotion"] == [2]
