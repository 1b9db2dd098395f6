"""Encoders of views as folders: without this package, by this package, and by its commands."""

import ast
import json

import pytest
from adapted_encoders import adapted, move
from elsewhere import used_elsewhere
from viewed_stories import WEIGHTS, by_hand, joined, parts, view_encoder

from narrlit.errors import ModelError
from narrlit.export import export
from narrlit.models.config import Prompts
from narrlit.models.embedding import embed
from narrlit.models.fusion import PRESETS
from narrlit.models.source import load_encoder
from narrlit.models.view_encoder import ViewEncoder
from narrlit.models.views import ViewFuser

ELSEWHERE = """
found = {
    "story": model.encode(texts),
    "one_by_one": model.encode(texts, batch_size=1),
    "turned": model.encode(texts[::-1], batch_size=2)[::-1],
    "candidate": model.encode_document(texts),
}
features = model.train().preprocess(texts[:1], prompt="text: ")
model(features)["sentence_embedding"][0, 0].backward()
assert model[0].fuser.heads.heads["plot"].inner.weight.grad.abs().sum() > 0
model.save(folder + "-again")
again = SentenceTransformer(folder + "-again", trust_remote_code=True, device="cpu")
found["again"] = again.encode(texts)
assert (again.max_seq_length, again.get_embedding_dimension()) == (80, 32)
try:
    model.encode(["A story alone."])
except ValueError as error:
    assert "has no views" in str(error)
else:
    raise AssertionError("a story without views was embedded")
"""
PROMPTS = Prompts(candidate="passage: ", story="text: ")


@pytest.fixture
def exported(tiny, tmp_path):
    export(view_encoder(tiny(), 16, prompts=PROMPTS, max_length=80), tmp_path / "out", "a run")
    return tmp_path / "out"


@pytest.mark.slow
def test_sentence_transformers_alone_gives_the_same_vectors(exported, tiny, tmp_path):
    encoder = view_encoder(tiny(), 16, prompts=PROMPTS, max_length=80)
    theirs = used_elsewhere(exported, joined(5), ELSEWHERE, tmp_path)
    for name in ("story", "one_by_one", "turned", "again"):
        assert abs(theirs[name] - by_hand(encoder, parts(5), "text: ")).max() < 1e-5, name
    assert abs(theirs["candidate"] - by_hand(encoder, parts(5), "passage: ")).max() < 1e-5


def test_its_code_needs_nothing_of_this_package(exported):
    names = {path.stem for path in exported.glob("*.py")}
    assert names == {"view_fusion", "inner_model", "described", "views", "fusion", "joined", "errors"}
    for path in exported.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom):
                assert node.module in names if node.level else not node.module.startswith("narrlit")
    (module,) = json.loads((exported / "modules.json").read_text())
    assert module["type"] == "view_fusion.ViewFusion"
    card = (exported / "README.md").read_text()
    assert "[outcome]" in card
    assert 'SentenceTransformer("out", trust_remote_code=True)' in card
    assert "80 tokens of a text or view at most" in card


@pytest.mark.parametrize("trust", [True, False])
def test_it_loads_here_with_the_same_vectors_and_runs_no_code_of_the_folder(exported, tiny, tmp_path, trust):
    (exported / "view_fusion.py").write_text(f"open({str(tmp_path / 'run.txt')!r}, 'w')")
    loaded = load_encoder(str(exported), trust_remote_code=trust)
    assert not (tmp_path / "run.txt").exists()
    assert not loaded.training
    expected = by_hand(view_encoder(tiny(), 16), parts(4), "text: ")
    assert abs(embed(loaded, joined(4), progress=False)[0] - expected).max() < 1e-6
    assert (loaded.max_length, loaded.fuser.fusion, loaded.fuser.hidden) == (80, WEIGHTS, 16)
    assert load_encoder(str(exported), max_length=7).max_length == 7


def test_adapters_are_merged_first(tiny, tmp_path):
    inner = move(adapted(tiny))
    encoder = ViewEncoder(inner, ViewFuser(inner.dimension, WEIGHTS)).eval()
    expected, _ = embed(encoder, joined(3), progress=False)
    export(encoder, tmp_path / "out", "a run")
    assert abs(embed(load_encoder(str(tmp_path / "out")), joined(3), progress=False)[0] - expected).max() < 1e-5


def test_a_folder_that_is_broken_is_named(exported):
    (exported / "views.safetensors").unlink()
    with pytest.raises(ModelError, match=r"views\.safetensors: it can't be read"):
        load_encoder(str(exported))


def test_the_command_fuses_any_model(narrlit, tiny, tmp_path):
    done = narrlit("export", tiny(), "--out", "fused", "--fusion", "action_only")
    assert done.code == 0, done.err
    loaded = load_encoder(str(tmp_path / "fused"))
    assert loaded.fuser.fusion == PRESETS["action_only"]
    assert abs(embed(loaded, joined(3), progress=False)[0] - by_hand(loaded, parts(3))).max() < 1e-6
    done = narrlit("export", "fused", "--out", "other", "--fusion", "1,1,0,0")
    assert done.code == 0, done.err
    assert load_encoder(str(tmp_path / "other")).fuser.fusion.weights == (1, 1, 0, 0)
    refused = narrlit("export", tiny(), "--out", "none", "--fusion", "best")
    assert refused.code == 2
    assert "--fusion best" in refused.err
    assert not (tmp_path / "none").exists()
