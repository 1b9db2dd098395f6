"""Every config can be instantiated, without weights, and says what it is."""

import re
from pathlib import Path

import pytest
import yaml
from refusals import refused

from narrlit.configuration import find_config, packaged_configs, read_yaml
from narrlit.experiments.reproduction.tables import read_tables
from narrlit.lightning_cli import StageCLI, parse_fit

ROOT = packaged_configs()
MENDEL292 = [f"mendel292{name}.yaml" for name in ("", "_linear", "_mlp", "_inductive", "_transductive")]
SYSTEMS = ["quickstart.yaml", "quickstart_hits.yaml", "nlp_fsdm.yaml", "hits.yaml", "comhis.yaml", *MENDEL292]
SYSTEMS += ["ttda704.yaml", "quickstart_ttda704.yaml", "ttda704_track_a.yaml", "narrlit_mini.yaml", "versions.yaml"]
SYSTEMS += ["baselines/triplet.yaml", "baselines/frozen.yaml"]
HITS = [
    f"ablations/hits_{name}.yaml" for name in ("baseline", "multi_negative", "one_iteration", "mask_only", "kd_only")
]
COMHIS = [f"ablations/comhis_{name}.yaml" for name in ("identity", "no_hard", "no_synthetic", "mined_validation")]
VIEWS = [f"ablations/ttda704_{name}.yaml" for name in ("as_published", "no_alignment")]
TRACK_A = [f"ablations/ttda704_track_a_{name}.yaml" for name in ("raw", "adaptive_margin")]
NLP_FSDM = [f"ablations/nlp_fsdm_{name}.yaml" for name in ("triplets", "large_batch")]
ABLATIONS = [*HITS, *COMHIS, *VIEWS, *TRACK_A, *NLP_FSDM]
ENCODERS = ("minilm", "bge_large", "mpnet", "labse", "multilingual_mpnet", "tiny", "any")
QWEN = ("qwen3_8b", "qwen3_8b_lora", "qwen3_8b_qlora")
BACKBONES = [f"backbones/{name}.yaml" for name in (*ENCODERS, *QWEN)]
SPACES = {"triplet": "baselines/triplet.yaml", "comhis": "comhis.yaml", "mendel292": "mendel292_inductive.yaml"}
SPACES |= {name: f"{name}.yaml" for name in ("mendel292_linear", "mendel292_mlp")}
SPACES = {f"search_spaces/{name}.yaml": system for name, system in SPACES.items()}
PAGES = {
    "hits": ["hits.yaml"],
    "ttda704": ["ttda704.yaml", "ttda704_track_a.yaml"],
    "nlp-fsdm": ["nlp_fsdm.yaml"],
    "mendel292": ["mendel292_inductive.yaml", "mendel292_transductive.yaml", *MENDEL292[:3]],
    "comhis": ["comhis.yaml"],
}
"""The configs that each system's page describes."""
PARAMETER = re.compile(r"`((?:model|data|trainer)\.[\w.]+)(?:: ([^`]+))?`")
HARDWARE = [f"hardware/{name}.yaml" for name in ("cpu", "gpu", "ddp", "fsdp")]


def leaves(value):
    if isinstance(value, dict):
        for inner in value.values():
            yield from leaves(inner)
    else:
        yield value


def parse(*configs, options=()):
    """Objective, datamodule and configuration of `narrlit fit`, no trainer (which asks for the hardware)."""
    arguments = []
    for config in configs:
        arguments += ["--config", str(ROOT / config)]
    return parse_fit([*arguments, *options])


def test_no_config_is_left_out():
    found = {str(path.relative_to(ROOT)) for path in ROOT.rglob("*.yaml")}
    assert found == {*SYSTEMS, *ABLATIONS, *BACKBONES, *HARDWARE, *SPACES}


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_system_is_instantiated_without_weights(system):
    cli = parse(system)
    written = yaml.safe_load((ROOT / system).read_text())
    assert type(cli.model).__name__ == written["model"]["class_path"]
    assert type(cli.datamodule).__name__ == written["data"]["class_path"]
    assert cli.model.encoder_config.model == written["model"]["init_args"]["encoder"]["model"]
    assert cli.model.optimization.learning_rate == written["model"]["init_args"]["optimization"]["learning_rate"]
    assert not list(cli.model.parameters())


@pytest.mark.parametrize("overlay", BACKBONES)
def test_a_backbone_changes_the_encoder_and_nothing_else(overlay):
    plain = parse("nlp_fsdm.yaml")
    changed = parse("nlp_fsdm.yaml", overlay)
    written = read_yaml(ROOT / overlay)["model"]["init_args"]["encoder"]
    settings = changed.model.encoder_config.as_dict()

    for name, value in written.items():
        if isinstance(value, dict):
            assert settings[name].items() >= value.items()
        else:
            assert settings[name] == value

    prompts = changed.model.encoder_config.prompts
    assert prompts.anchor == "query: "
    assert prompts.candidate == "passage: "
    assert changed.model.optimization == plain.model.optimization
    assert changed.datamodule.loading == plain.datamodule.loading


def test_overlays_leave_pooling_to_the_model_and_shorten_nothing():
    for name in (*ENCODERS, *QWEN):
        assert parse("nlp_fsdm.yaml", f"backbones/{name}.yaml").model.encoder_config.pooling is None

    for name in ENCODERS[:-2]:
        written = read_yaml(ROOT / f"backbones/{name}.yaml")["model"]["init_args"]["encoder"]
        assert written["max_length"] == 512
        assert written["prompts"] == {"story": None}

    assert parse("hits.yaml", "backbones/minilm.yaml").model.encoder_config.prompts.story is None
    assert len(parse("hits.yaml", "backbones/qwen3_8b_qlora.yaml").model.encoder_config.prompts.story) > 50


def test_no_overlay_trains_weights_in_half_precision():
    for overlay in (*BACKBONES, *HARDWARE):
        settings = parse("nlp_fsdm.yaml", overlay)
        encoder = settings.model.encoder_config
        assert not str(settings.config["trainer"]["precision"]).endswith("true") or overlay == "hardware/cpu.yaml"
        assert encoder.dtype == "float32" or encoder.lora is not None or overlay == "backbones/qwen3_8b.yaml"


@pytest.mark.parametrize("overlay", HARDWARE)
def test_hardware_changes_the_trainer_and_nothing_else(overlay):
    changed = parse("quickstart.yaml", overlay)
    written = yaml.safe_load((ROOT / overlay).read_text())
    assert set(written) == {"trainer"}
    for name in ("accelerator", "devices", "precision"):
        assert changed.config["trainer"][name] == written["trainer"][name]
    assert changed.config["trainer"]["max_epochs"] == 2


def test_overlays_hold_no_lists():
    for overlay in (*ABLATIONS, *BACKBONES, *HARDWARE):
        assert not any(isinstance(leaf, list) for leaf in leaves(yaml.safe_load((ROOT / overlay).read_text())))


@pytest.mark.parametrize(("space", "system"), SPACES.items())
def test_a_search_space_is_of_options_of_its_system(space, system):
    dimensions = read_yaml(ROOT / space)
    bounds = {name: entry.get("choices") or (entry["low"], entry["high"]) for name, entry in dimensions.items()}

    for end in (0, -1):
        wanted = {name: values[end] for name, values in bounds.items()}
        cli = parse(system, options=[f"--{name}={value}" for name, value in wanted.items()])
        assert {name: cli.config[name] for name in bounds} == wanted


@pytest.mark.parametrize("name", [*SYSTEMS, *ABLATIONS, *BACKBONES, *HARDWARE, *SPACES])
def test_a_header_says_what_it_is(name):
    header = [line for line in (ROOT / name).read_text().splitlines() if line.startswith("#")]
    words = ["What:", "Run:"] if name not in ("hardware/cpu.yaml", "hardware/gpu.yaml") else ["What:"]
    if name in (*SYSTEMS, *SPACES):
        words += ["Needs:", "Expect:"]
    if any(name in configs for configs in PAGES.values()):
        words += ["Variant:"]

    for word in words:
        assert any(line.startswith(f"# {word}") for line in header), word
    assert header[0].startswith("# What:    ")
    assert all(re.match(r"# ((What|Needs|Run|Expect):  |Variant: |         )\s*\S", line) for line in header)
    assert sum("What:" in line for line in header) == 1
    assert f"configs/{name}" in "".join(header) or name.startswith("hardware/")


def test_configs_are_found_in_the_package_from_anywhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert Path(find_config("configs/quickstart.yaml")) == ROOT / "quickstart.yaml"
    assert Path(find_config("backbones/minilm.yaml")) == ROOT / "backbones/minilm.yaml"

    (tmp_path / "quickstart.yaml").write_text("{}")
    assert find_config("quickstart.yaml") == "quickstart.yaml"
    with refused("mistyped_config", near="nlp_fsdm.yaml"):
        find_config("configs/nlp_fsmd.yaml")

    with refused("no_such_config", option="space", path="none.yaml", known=sorted(SPACES)):
        find_config("none.yaml", "space")


def test_hits_has_the_papers_values():
    cli = parse("hits.yaml")
    objective, encoder = cli.model, cli.model.encoder_config
    assert encoder.model == "Qwen/Qwen3-Embedding-8B"
    assert encoder.pooling == "last"
    assert encoder.max_length == 1024
    assert encoder.lora.rank == 32
    assert encoder.lora.alpha == 64
    assert encoder.lora.dropout == 0.1
    assert encoder.gradient_checkpointing
    assert len(encoder.prompts.story) > 50
    assert encoder.prompts.anchor is encoder.prompts.candidate is None  # one instruction for every role

    plan = objective.optimization
    assert plan.optimizer == "adamw"
    assert plan.learning_rate == 5e-5
    assert plan.warmup == 0
    assert objective.temperature == 0.09
    assert objective.mask_margin == -0.05

    follow = objective.distillation
    assert follow.temperature == 0.15
    assert follow.first_weight == 0.7
    assert follow.last_weight == 0.05
    assert follow.space == "cosine"
    assert not objective.use_triple_negative
    assert cli.datamodule.loading.batch_size == 8

    trainer = cli.config["trainer"]
    (promotion,) = [c for c in trainer["callbacks"] if "TeacherPromotion" in c["class_path"]]
    assert trainer["max_epochs"] == 15
    assert promotion["init_args"]["rounds"] == 3
    assert cli.config["seed_everything"] == 42


def test_ablations_change_what_they_name():
    names = {overlay: parse("hits.yaml", overlay) for overlay in HITS}
    baseline, multi_negative, one_iteration, mask_only, kd_only = names.values()
    assert type(baseline.model).__name__ == "Triplet"
    assert baseline.model.margin == 0.1
    assert baseline.model.negatives == "triple"
    assert mask_only.model.mask is True
    assert mask_only.model.distill is False
    assert kd_only.model.mask is False
    assert kd_only.model.distill is True

    promotion = one_iteration.config["trainer"]["callbacks"]["init_args"]
    assert one_iteration.config["trainer"]["max_epochs"] == 10
    assert promotion["rounds"] == 2
    assert promotion["patience"] == 1
    for cli in (baseline, multi_negative):
        assert cli.config["trainer"]["callbacks"] is None
        assert cli.config["trainer"]["max_epochs"] == 5
    for overlay, cli in names.items():
        assert cli.model.encoder_config.lora.rank == 32
        assert cli.model.optimization.learning_rate == 5e-5
        assert cli.config["trainer"]["logger"]["init_args"]["name"] == Path(overlay).stem


def test_comhis_has_the_papers_values():
    cli = parse("comhis.yaml")
    objective = cli.model
    plan = cli.model.optimization
    hard = cli.datamodule.hard_examples

    assert objective.encoder_config.model == "Qwen/Qwen3-Embedding-8B"
    assert objective.margin == 0.2
    assert hard.share == 0.2
    assert hard.weight == 2.0
    assert hard.mine_validation is False
    assert plan.optimizer == "adamw"
    assert plan.learning_rate == 1e-4
    assert plan.weight_decay == 5e-4
    assert plan.warmup == 0
    assert plan.decay == "none"
    assert cli.datamodule.loading.batch_size == 32

    trainer = cli.config["trainer"]
    (stopping,) = trainer["callbacks"]
    assert trainer["max_epochs"] == 30
    assert stopping["init_args"]["patience"] == 15


def test_comhis_ablations_change_what_they_name():
    found = {overlay: parse("comhis.yaml", overlay) for overlay in COMHIS}
    identity, no_hard, no_synthetic, mined = found.values()
    assert identity.model.noise == 0.0
    assert identity.model.optimization.learning_rate == 0.0
    assert no_hard.datamodule.hard_examples.weight == 1
    assert no_synthetic.datamodule.extra.synthetic is None
    assert mined.datamodule.hard_examples.mine_validation
    for overlay, cli in found.items():
        assert cli.model.margin == 0.2
        assert cli.config["trainer"]["logger"]["init_args"]["name"] == Path(overlay).stem


@pytest.mark.parametrize("name", MENDEL292)
def test_mendel292_has_the_papers_values(name):
    cli = parse(name)
    objective, plan = cli.model, cli.model.optimization
    assert objective.encoder_config.model == "minilm"
    assert objective.encoder_config.max_length == 256
    assert cli.datamodule.loading.batch_size == 64
    assert plan.optimizer == "adam"

    if name in ("mendel292_linear.yaml", "mendel292_mlp.yaml"):
        assert objective.hidden == ([512, 512] if "mlp" in name else [])
        assert objective.output == 256
        assert objective.margin == 1.0
        assert plan.learning_rate == 1e-3
        return

    labelled = name != "mendel292.yaml"

    assert plan.learning_rate == 1.4e-4
    assert cli.config["trainer"]["max_epochs"] == 10
    assert objective.bilstm.hidden == 128
    assert objective.bilstm.layers == 2
    assert objective.sizes == (128, 64, 64)
    assert objective.margin == (1.002 if labelled else 1.038)

    labels = cli.datamodule.pseudo_labels
    assert labels.source == ("positional" if labelled else "none")
    assert labels.transductive == (name == "mendel292_transductive.yaml")

    if labelled:
        aspects = objective.aspects
        assert objective.triplet_weight == 1.437
        assert aspects.weight == 0.974
        assert aspects.unlabelled_weight == 0.355
        assert aspects.weights == (0.5, 0.3, 0.2)
        assert aspects.margin == 0.537
        assert labels.clusters.theme == 8
        assert labels.clusters.action == 5
        assert labels.clusters.outcome == 4


@pytest.mark.parametrize("space", [space for space in SPACES if "mendel292" in space])
def test_mendel292_s_spaces_hold_their_configs(space):
    cli = parse(SPACES[space])
    for name, dimension in read_yaml(ROOT / space).items():
        value = cli.config[name]
        if "choices" in dimension:
            assert value in dimension["choices"], name
        else:
            assert dimension["low"] < value < dimension["high"], name


def test_ttda704_has_the_papers_values():
    cli = parse("ttda704.yaml")
    objective, plan = cli.model, cli.model.optimization
    assert objective.encoder_config.model == "sentence-transformers/all-mpnet-base-v2"
    assert objective.encoder_config.pooling == "mean"
    assert objective.encoder_config.max_length == 512
    assert objective.fusion.weights == (0.5, 0.1, 0.2, 0.2)
    assert objective.hidden == 512
    assert objective.temperature == 0.07
    assert objective.alignment == 0.5
    assert objective.variant == "as_written"
    assert plan.optimizer == "adamw"
    assert plan.learning_rate == 2e-5
    assert plan.weight_decay == 1e-5

    loading = cli.datamodule.loading
    trainer = cli.config["trainer"]
    assert loading.batch_size == 32
    assert loading.samples_per_epoch is None
    assert loading.pseudonyms.backend == "none"
    assert trainer["max_epochs"] == 15
    assert trainer["gradient_clip_val"] == 1.0

    published, contrasts = (parse("ttda704.yaml", overlay).model for overlay in VIEWS)
    assert published.variant == "as_published"
    assert published.alignment == 0.5
    assert contrasts.variant == "as_written"
    assert contrasts.alignment == 0


def test_ttda704_track_a_has_the_papers_values():
    cli = parse("ttda704_track_a.yaml")
    objective, plan = cli.model, cli.model.optimization
    assert objective.encoder_config.frozen_layers == 0.4
    assert objective.encoder_config.max_length == 512
    assert objective.distance == "cosine"
    assert objective.margin == 0.3
    assert objective.maximum_margin is None
    assert plan.learning_rate == 2e-5
    assert plan.weight_decay == 0.01
    assert plan.warmup == 0.1
    assert plan.decay == "linear"

    loading = cli.datamodule.loading
    assert loading.batch_size == 16
    assert loading.pseudonyms.backend == "spacy"
    assert loading.pseudonyms.scope == "triple"
    ours = (loading.pseudonyms.pipeline, loading.pseudonyms.coref, loading.pseudonyms.cluster)
    assert ours == ("en_core_web_sm", False, "names")
    paper = read_tables("ttda704").pseudonyms
    options = [f"--data.loading.pseudonyms.{name}={value}" for name, value in paper.items()]
    pseudonyms = parse("ttda704_track_a.yaml", options=options).datamodule.loading.pseudonyms
    assert (pseudonyms.pipeline, pseudonyms.coref, pseudonyms.cluster) == ("en_core_web_trf", True, "mentions")

    trainer = cli.config["trainer"]
    assert trainer["max_epochs"] == 5
    assert trainer["precision"] == "16-mixed"

    raw, adaptive = (parse("ttda704_track_a.yaml", overlay) for overlay in TRACK_A)
    assert raw.datamodule.loading.pseudonyms.backend == "none"
    assert raw.model.distance == "cosine"

    margins = (adaptive.model.distance, adaptive.model.margin, adaptive.model.maximum_margin)
    assert margins == ("squared_euclidean", 0.3, 1.5)
    assert adaptive.datamodule.loading.pseudonyms.backend == "spacy"


def setting(cli, name):
    """Value of an option such as model.encoder.pooling in a parsed command, KeyError where there is none."""
    top, *path = name.split(".")
    value = cli.config[top] if top == "trainer" else cli.config[top]["init_args"]
    for key in path:
        value = value[key]
    return value


def overlay_of(values):
    """A config that sets options such as model.encoder.pooling to values, given as YAML."""
    config = {}
    for name, value in values.items():
        top, *path = name.split(".")
        inner = config.setdefault(top, {})
        for key in path[:-1] if top == "trainer" else ["init_args", *path[:-1]]:
            inner = inner.setdefault(key, {})
        inner[path[-1]] = yaml.safe_load(value)
    return config


def has_setting(cli, name):
    try:
        setting(cli, name)
    except KeyError:
        return False
    return True


@pytest.mark.parametrize("page", PAGES)
def test_parameters_that_a_systems_page_names_can_be_set(page, tmp_path):
    text = (Path(__file__).parents[1] / f"docs/systems/{page}.md").read_text(encoding="utf-8")
    tables = "\n".join(line for line in text.splitlines() if line.startswith("|"))
    named = PARAMETER.findall(tables)
    assert len(named) >= 3

    parsed = {config: parse(config) for config in PAGES[page]}
    values = {config: {} for config in PAGES[page]}
    for name, value in named:
        config = next((config for config, cli in parsed.items() if has_setting(cli, name)), None)
        assert config is not None, name
        if value:
            values[config][name] = value

    for config, wanted in values.items():
        overlay = tmp_path / config
        overlay.write_text(yaml.safe_dump(overlay_of(wanted)), encoding="utf-8")
        cli = parse(config, options=("--config", str(overlay)))
        for name, value in wanted.items():
            assert setting(cli, name) == yaml.safe_load(value), name


def test_defaults_are_the_decisions_that_the_pages_name():
    assert parse("nlp_fsdm.yaml").model.reduction == "mean"
    assert parse("ttda704.yaml").model.alignment_terms == "mean"
    assert parse("hits.yaml").model.first_masked_round == 0

    mendel292 = parse("mendel292_inductive.yaml")
    assert mendel292.model.aspects.divisor == "paired"
    assert mendel292.datamodule.pseudo_labels.rounding == "down"
    assert parse("comhis.yaml").datamodule.validation_share == 1


def test_nlp_fsdm_is_as_written():
    plain = parse("nlp_fsdm.yaml")
    triplets = parse("nlp_fsdm.yaml", *NLP_FSDM)
    assert plain.model.candidates == "pairs"
    assert triplets.model.candidates == "triplets"
    assert plain.model.scale == 20.0
    assert plain.datamodule.loading.batch_size == 4


def test_rounds_can_be_set_on_the_command_line():
    options = ["--trainer.callbacks.init_args.rounds", "2", "--trainer.max_epochs", "4", "--trainer.accelerator", "cpu"]
    cli = StageCLI("fit", ["--config", str(ROOT / "hits.yaml"), *options])
    assert [c.rounds for c in cli.trainer.callbacks if type(c).__name__ == "TeacherPromotion"] == [2]
