"""Overlays: found, named, and options that they can't go with."""

from pathlib import Path

import pytest

from narrlit.commands.overlays import find_overlays, overruled
from narrlit.commands.training import packaged_configs
from narrlit.errors import OptionError

HITS = ["--config", "configs/hits.yaml", "--data.train", "t.jsonl"]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def write(path, text="model: {init_args: {mask: false}}"):
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(text)


def names(found):
    return [overlay.name for overlay in found]


def test_by_default_they_are_the_systems_own():
    found = find_overlays(HITS, None)
    assert names(found) == ["baseline", "kd_only", "mask_only", "multi_negative"]
    assert [Path(overlay.path).parent for overlay in found] == [packaged_configs() / "ablations"] * 4
    assert found[1].settings == {"model.mask": False, "model.distill": True, "trainer.logger.name": "hits_kd_only"}
    assert names(find_overlays(["--trainer.max_epochs", "2", "-c=hits.yaml"], None)) == names(found)


def test_files_and_patterns_are_found_here_first_then_in_the_package():
    write("mine/hits_a.yaml")
    write("mine/b.yaml")
    named = "mine/*.yaml, configs/ablations/hits_kd_only.yaml,ablations/hits_m*.yaml"
    assert names(find_overlays(HITS, named)) == ["b", "a", "kd_only", "mask_only", "multi_negative"]
    write("configs/ablations/hits_other.yaml")
    assert names(find_overlays(HITS, None)) == ["other"]
    assert names(find_overlays(HITS, str(Path("mine").resolve() / "*.yaml"))) == ["b", "a"]


@pytest.mark.parametrize(
    ("fit", "named", "words"),
    [
        ([], None, "give --config FILE"),
        (["--config"], None, "give --config FILE"),
        (["--config", "nlp_fsdm.yaml"], None, "there is no configs/ablations/nlp_fsdm_.*hits_kd_only"),
        (HITS, "none.yaml", "--ablations none.yaml: no such file; with narrlit come"),
        (HITS, "none_*.yaml", "--ablations none_.*: no such file; with narrlit come ablations/comhis"),
        (HITS, "x/a.yaml,x/hits_a.yaml", "x/a.yaml: there are two rows a"),
        (HITS, "x/a.yaml,x/a.yaml", "two rows a"),
        (HITS, "x/hits_full.yaml", "two rows full"),
        (HITS, "x/broken.yaml", "x/broken.yaml: it is no YAML"),
        (HITS, "x/empty.yaml", "x/empty.yaml: it sets nothing"),
    ],
)
def test_mistakes_are_named(fit, named, words):
    for name in ("a", "hits_a", "hits_full"):
        write(f"x/{name}.yaml")
    write("x/broken.yaml", "a: [")
    write("x/empty.yaml", "# nothing\n")
    with pytest.raises(OptionError, match=words):
        find_overlays(fit, named)


OVERLAY = """
model: {class_path: Triplet, init_args: {margin: 0.1, encoder: {lora: null}}}
trainer: {max_epochs: 5, callbacks: null, logger: {init_args: {name: x}}}
"""


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (["--trainer.max_epochs", "2"], "a: trainer.max_epochs is 5 there, whatever --trainer.max_epochs says"),
        (["--trainer.max_epochs=5"], "a: trainer.max_epochs is 5 there"),
        (["--model", "Ranking"], "a: model.class_path is Triplet there, whatever --model says"),
        (["--model.class_path", "Ranking"], "whatever --model.class_path says"),
        (["--model.margin", "0.5"], "whatever --model.margin says"),
        (["--model.init_args.margin", "0.5"], "whatever --model.init_args.margin says"),
        (["--trainer.callbacks+=Timer"], "a: trainer.callbacks is None there, whatever --trainer.callbacks says"),
        (["--model.encoder", "{model: x, lora: {rank: 4}, lora: null}"], "whatever --model.encoder says"),
        (["--data.train", "x", "--trainer", "{max_epochs: 2}"], "whatever --trainer says"),
    ],
)
def test_an_option_that_the_overlay_overrules_is_told(options, named):
    write("x/a.yaml", OVERLAY)
    (overlay,) = find_overlays(HITS, "x/a.yaml")
    (told,) = overruled([*HITS, *options], overlay)
    assert named in told


def test_other_options_go_with_it():
    write("x/a.yaml", OVERLAY)
    (overlay,) = find_overlays(HITS, "x/a.yaml")
    beneath = ["--trainer.callbacks.init_args.rounds", "2", "--model.encoder.lora.rank", "8"]
    other = ["--trainer.max_steps", "9", "--model.encoder", "{model: x}", "--model.init_args.margin_of_error=1"]
    logger = ["--trainer.logger.name", "y", "--config", "x/b.yaml", "--trainer.default_root_dir={"]
    assert overruled([*HITS, *beneath, *other, *logger], overlay) == []


SETTINGS = "settings: {equal: [1, 1, 1, 1]}"


def test_files_of_fusion_settings_are_no_overlays():
    write("configs/ablations/hits_fusion.yaml", SETTINGS)
    write("configs/ablations/hits_a.yaml")
    write("configs/ablations/hits_b.yaml", f"{SETTINGS}\nmodel: {{init_args: {{mask: true}}}}")
    assert names(find_overlays(HITS, None)) == ["a", "b"]
    assert names(find_overlays(HITS, "configs/ablations/*.yaml")) == ["a", "b"]
    with pytest.raises(OptionError, match=r"hits_fusion.yaml: it has settings of narrlit fuse"):
        find_overlays(HITS, "configs/ablations/hits_a.yaml,configs/ablations/hits_fusion.yaml")
    with pytest.raises(OptionError, match="there is no overlay of hits among configs/ablations/hits_f"):
        find_overlays(HITS, "configs/ablations/hits_f*.yaml")
    with pytest.raises(OptionError, match=r"none.*ablations/comhis_no_hard") as refused:
        find_overlays(HITS, "none*.yaml")
    assert "ttda704_fusion" not in str(refused.value)


def test_ttda704_leaves_its_fusion_settings_and_the_overlays_of_track_a_out():
    assert names(find_overlays(["--config", "ttda704.yaml"], None)) == ["as_published", "no_alignment"]
    assert names(find_overlays(["--config", "configs/ttda704_track_a.yaml"], None)) == ["adaptive_margin", "raw"]


def test_overlays_of_a_system_with_a_longer_name_are_its_own(monkeypatch, tmp_path):
    package = tmp_path / "package"
    for system in ("hits", "hits_long", "hits_long_kd"):
        write(package / f"{system}.yaml")
    for overlay in ("hits_a", "hits_long_b", "hits_longer", "hits_long_kd_c", "hits_baseline"):
        write(package / f"ablations/{overlay}.yaml")
    write(package / "spaces/hits_a.yaml")
    write(package / "backbones/hits_baseline.yaml")
    monkeypatch.setattr("narrlit.commands.training.packaged_configs", lambda: package)
    monkeypatch.setattr("narrlit.commands.overlays.packaged_configs", lambda: package)
    assert names(find_overlays(["--config", "hits.yaml"], None)) == ["a", "baseline", "longer"]
    assert names(find_overlays(["--config", "hits_long.yaml"], None)) == ["b"]
    assert names(find_overlays(["--config", "hits_long_kd.yaml"], None)) == ["c"]
    assert names(find_overlays(["--config", "hits.yaml"], "ablations/hits_long_*.yaml")) == ["long_b", "long_kd_c"]
    write("configs/ablations/hits_long_mine.yaml")
    with pytest.raises(OptionError, match="no overlay of hits among"):
        find_overlays(["--config", "hits.yaml"], None)
