"""Heads of views and fusion, apart from an encoder."""

import json

import pytest
import torch
from torch.nn.functional import normalize

from narrlit.errors import ModelError, OptionError
from narrlit.models.fusion import PARTS, PRESETS, Fusion, fusion_of
from narrlit.models.views import ViewFuser, ViewHeads, fuse

FUSION = Fusion(0.4, 0.3, 0.1, 0.2)


def unit(*shape, seed=0):
    return normalize(torch.randn(*shape, generator=torch.Generator().manual_seed(seed)), dim=-1)


def test_a_fused_vector_is_the_weighted_sum_of_length_one():
    vectors = unit(3, 4, 5)
    for story, found in zip(vectors, fuse(vectors, FUSION), strict=True):
        total = 0.4 * story[0] + 0.3 * story[1] + 0.1 * story[2] + 0.2 * story[3]
        assert torch.allclose(found, total / total.norm(), atol=1e-6)


def test_one_weight_alone_gives_that_part():
    vectors = unit(3, 4, 5)
    for place in range(4):
        weights = [0.0] * 4
        weights[place] = 0.3
        assert torch.allclose(fuse(vectors, Fusion(*weights)), vectors[:, place], atol=1e-6)
    assert torch.equal(fuse(vectors, PRESETS["action_only"]), fuse(vectors, Fusion(0, 0, 1, 0)))


def test_every_view_has_its_own_head():
    torch.manual_seed(0)
    heads = ViewHeads(5, 7)
    views = unit(2, 3, 5)
    for place, name in enumerate(PARTS[1:]):
        head = heads.heads[name]
        expected = head.outer(torch.relu(head.inner(views[:, place])))
        assert torch.allclose(heads(views)[:, place], expected / expected.norm(dim=-1, keepdim=True), atol=1e-6)
    # One vector goes through all three.
    assert torch.allclose(heads(views[:, :1]), heads(views[:, :1].repeat(1, 3, 1)))
    assert (heads.heads["theme"].inner.out_features, heads.heads["plot"].outer.out_features) == (7, 5)


def test_a_fuser_leaves_the_whole_text_without_a_head_and_lengths_aside():
    torch.manual_seed(0)
    fuser = ViewFuser(5, FUSION, hidden=7)
    vectors = unit(2, 4, 5)
    assert torch.allclose(fuser.parts(3 * vectors)[:, 0], vectors[:, 0], atol=1e-6)
    assert torch.allclose(fuser.parts(3 * vectors)[:, 1:], fuser.heads(vectors[:, 1:]), atol=1e-6)
    assert torch.allclose(fuser(vectors), fuse(fuser.parts(vectors), FUSION))
    assert torch.allclose(ViewFuser(5, FUSION).parts(3 * vectors), vectors, atol=1e-6)
    assert fuser.needed == [0, 1, 2, 3]
    assert ViewFuser(5, PRESETS["action_only"]).needed == [2]


@pytest.mark.parametrize("hidden", [None, 7])
def test_a_fuser_is_saved_and_read(tmp_path, hidden):
    torch.manual_seed(0)
    fuser = ViewFuser(5, FUSION, hidden)
    fuser.save(tmp_path)
    again = ViewFuser.load(tmp_path)
    assert torch.equal(again(unit(2, 4, 5)), fuser(unit(2, 4, 5)))
    assert (again.fusion, again.hidden) == (FUSION, hidden)


def test_broken_files_are_named(tmp_path):
    fuser = ViewFuser(5, FUSION, 7)
    fuser.save(tmp_path)
    described = json.loads((tmp_path / "views.json").read_text())
    for change in ({"fusion": {"full": 0, "theme": 0, "plot": 0, "outcome": 0}}, {"dimension": "x"}, {"hidden": "no"}):
        (tmp_path / "views.json").write_text(json.dumps({**described, **change}))
        with pytest.raises(ModelError, match=r"views\.json: it does not describe"):
            ViewFuser.load(tmp_path)
    (tmp_path / "views.json").write_text(json.dumps({**described, "hidden": 8}))
    with pytest.raises(ModelError, match=r"views\.safetensors: its weights are not those"):
        ViewFuser.load(tmp_path)
    (tmp_path / "views.json").write_text(json.dumps(described))
    (tmp_path / "views.safetensors").write_bytes(b"broken")
    with pytest.raises(ModelError, match=r"views\.safetensors: it can't be read"):
        ViewFuser.load(tmp_path)


def test_the_papers_settings_stand_under_their_names():
    assert PRESETS["submitted"].weights == (0.5, 0.1, 0.2, 0.2)
    assert PRESETS["equal"].weights == (0.25, 0.25, 0.25, 0.25)
    assert PRESETS["full_only"].weights == (1, 0, 0, 0)
    assert PRESETS["higher_theme"].weights == (0.4, 0.3, 0.15, 0.15)
    assert fusion_of("higher_theme") is PRESETS["higher_theme"]
    assert fusion_of("0.4,0.3, 0.1,0.2") == FUSION
    assert str(FUSION) == "0.4,0.3,0.1,0.2"


@pytest.mark.parametrize("written", ["best", "1,2,3", "a,b,c,d", "1,1,1,1,1", ""])
def test_what_is_no_fusion_is_refused(written):
    with pytest.raises(OptionError, match="--fusion"):
        fusion_of(written)


@pytest.mark.parametrize("weights", [(0, 0, 0, 0), (1, -1, 0, 0), (float("nan"), 1, 0, 0), (float("inf"), 1, 0, 0)])
def test_weights_that_fuse_nothing_are_refused(weights):
    with pytest.raises(OptionError, match="sum to 0" if sum(weights) == 0 and min(weights) == 0 else "at least 0"):
        Fusion(*weights)
