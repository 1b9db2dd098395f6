"""Exported folders: the same embeddings without this package, by this package, and honest cards."""

import ast
import shutil

import numpy as np
import pytest
import torch
from elsewhere import used_elsewhere
from head_encoders import (
    PROMPTS,
    ROLES,
    TEXTS,
    WEIGHTS,
    joined,
    sentence_encoder,
    view_encoder,
    viewed,
    views_by_hand,
)
from json_files import read_json
from refusals import refused
from safetensors.torch import load_file, save_file
from sentence_transformers import SentenceTransformer

from narrlit.encoding.loading import load
from narrlit.exporting.folders import check_export, export, write_model_folder
from narrlit.exporting.origin import Origin
from narrlit.models.config import EncoderConfig
from narrlit.models.embedding import embed_stories
from narrlit.models.encoder import Encoder
from narrlit.models.heads import build_head
from narrlit.models.registry import load_encoder, with_fusion

HEADS = {
    "projection": ("projection", {"noise": 0.3}),
    "linear": ("mlp", {"output": 5}),
    "mlp": ("mlp", {"hidden": [12, 7], "output": 5}),
}
SENTENCES = """
found = {
    "story": model.encode(texts),
    "one_by_one": model.encode(texts, batch_size=1),
    "turned": model.encode(texts[::-1], batch_size=2)[::-1],
    "anchor": model.encode_query(texts),
    "candidate": model.encode_document(texts),
}
features = model.train().preprocess(texts[:1], prompt="text: ")
model(features)["sentence_embedding"][0, 0].backward()
assert model[0].lstm.weight_ih_l0.grad.abs().sum() > 0
model.save(folder + "-again")
again = SentenceTransformer(folder + "-again", trust_remote_code=True, device="cpu")
found["again"] = again.encode(texts)
assert (again.max_seq_length, again.get_embedding_dimension()) == (80, 12)
try:
    model.encode(["A b.", " "])
except ValueError as error:
    assert "has no sentence" in str(error)
else:
    raise AssertionError("a blank story was embedded")
"""
VIEWS = """
found = {
    "story": model.encode(texts),
    "turned": model.encode(texts[::-1], batch_size=2)[::-1],
    "candidate": model.encode_document(texts),
}
features = model.train().preprocess(texts[:1], prompt="text: ")
model(features)["sentence_embedding"][0, 0].backward()
assert model[0].heads.heads["action"][0].weight.grad.abs().sum() > 0
try:
    model.encode(["A story alone."])
except ValueError as error:
    assert "views are missing" in str(error)
else:
    raise AssertionError("a story without views was embedded")
"""


@pytest.fixture(scope="module")
def written(tiny, tmp_path_factory):
    """Exported folders of an encoder of sentences and of one of views, by what they read."""
    folder = tmp_path_factory.mktemp("exported")
    options = {"prompts": PROMPTS, "max_length": 80}
    for reads, encoder in (
        ("sentences", sentence_encoder(tiny(), **options)),
        ("views", view_encoder(tiny(), 16, **options)),
    ):
        write_model_folder(encoder, folder / reads / "out", Origin(trained=True))
    return {reads: folder / reads / "out" for reads in ("sentences", "views")}


@pytest.fixture
def exported(written, tmp_path):
    """exported("sentences" | "views"): a copy of that folder, to be damaged."""
    return lambda reads: shutil.copytree(written[reads], tmp_path / "out")


@pytest.mark.parametrize("kind", HEADS)
def test_plain_heads_need_no_code_of_this_package(tiny, tmp_path, kind):
    name, settings = HEADS[kind]
    encoder = Encoder(EncoderConfig(tiny())).eval()
    encoder.attach(build_head(name, 32, **settings))

    assert encoder.normalized

    before = embed_stories(encoder, TEXTS, progress=False).embeddings
    write_model_folder(encoder, tmp_path / "out", Origin(trained=True))
    assert not list((tmp_path / "out").glob("*.py"))

    theirs = SentenceTransformer(str(tmp_path / "out"), device="cpu").encode(TEXTS)
    assert abs(theirs - before).max() < 1e-6
    assert (
        abs(embed_stories(load_encoder(str(tmp_path / "out")), TEXTS, progress=False).embeddings - before).max() < 1e-6
    )


@pytest.mark.long
@pytest.mark.slow
def test_sentence_transformers_alone_reads_sentences_and_views(written, tiny, tmp_path):
    stories = viewed(5)
    jobs = [(written["sentences"], TEXTS, SENTENCES), (written["views"], joined(stories), VIEWS)]
    sentences, views = used_elsewhere(jobs, tmp_path)
    encoder = sentence_encoder(tiny(), prompts=PROMPTS, max_length=80)
    ours = {role: embed_stories(encoder, TEXTS, role, progress=False).embeddings for role in ROLES}

    for name, role in [*zip(ROLES, ROLES, strict=True), *((x, "story") for x in ("one_by_one", "turned", "again"))]:
        assert abs(sentences[name] - ours[role]).max() < 1e-6, name

    encoder = view_encoder(tiny(), 16, prompts=PROMPTS, max_length=80)
    for name, prompt in (("story", "text: "), ("turned", "text: "), ("candidate", "passage: ")):
        assert abs(views[name] - views_by_hand(encoder, stories, prompt)).max() < 1e-6, name


@pytest.mark.parametrize("reads", ["sentences", "views"])
def test_its_code_needs_nothing_of_this_package(exported, reads):
    folder = exported(reads)
    names = {path.stem for path in folder.glob("*.py")}
    assert "heads" in names

    for path in folder.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom):
                assert node.module in names if node.level else not node.module.startswith("narrlit")
            if isinstance(node, ast.Import):
                assert not any(alias.name.startswith("narrlit") for alias in node.names)

    (module,) = read_json(folder / "modules.json")

    assert module["type"] == {"sentences": "heads.SentenceBiLSTM", "views": "heads.ViewFusion"}[reads]

    card = (folder / "README.md").read_text()
    assert 'SentenceTransformer("out", trust_remote_code=True)' in card
    assert f"at most 80 tokens of a {'sentence' if reads == 'sentences' else 'text or view'}." in card


@pytest.mark.parametrize("trust", [True, False])
@pytest.mark.parametrize("reads", ["sentences", "views"])
def test_it_loads_here_and_runs_no_code_of_the_folder(exported, tiny, tmp_path, reads, trust):
    folder = exported(reads)
    (folder / "heads.py").write_text(f"open({str(tmp_path / 'run.txt')!r}, 'w')")
    loaded = load_encoder(str(folder), trust_remote_code=trust)

    assert not (tmp_path / "run.txt").exists()
    assert not loaded.training
    assert loaded.reads == reads
    assert loaded.max_length == 80

    encoder = (
        sentence_encoder(tiny(), prompts=PROMPTS) if reads == "sentences" else view_encoder(tiny(), 16, prompts=PROMPTS)
    )
    stories = TEXTS if reads == "sentences" else viewed(3)
    for role in ROLES:
        expected = embed_stories(encoder, stories, role, progress=False).embeddings
        assert abs(embed_stories(loaded, stories, role, progress=False).embeddings - expected).max() < 1e-6

    assert load_encoder(str(folder), max_length=7).max_length == 7


def _lose_a_weight(path):
    weights = load_file(path)
    weights.pop("linear.bias")
    save_file(weights, path)


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("bilstm.json", lambda path: path.write_text("nonsense")),
        ("bilstm.json", lambda path: path.write_text('{"dimension": 32, "hidden": 8}')),
        ("model.safetensors", lambda path: path.unlink()),
        ("model.safetensors", _lose_a_weight),
        ("model.safetensors", lambda path: save_file({**load_file(path), "linear.bias": torch.zeros(3)}, path)),
    ],
)
def test_a_damaged_folder_is_refused_in_one_line(exported, name, damage):
    folder = exported("sentences")
    damage(folder / name)
    with refused("broken_exported_model", path="out") as caught:
        load_encoder(str(folder))
    assert "\n" not in str(caught.value)


def test_views_of_sentences_are_not_exported(tiny, tmp_path):
    with refused("fusion_of_sentences"):
        write_model_folder(with_fusion(sentence_encoder(tiny()), WEIGHTS), tmp_path / "out", Origin(trained=True))
    assert not (tmp_path / "out").exists()


def test_a_card_of_an_untrained_model_claims_no_training(tiny, tmp_path):
    for trained in (True, False):
        write_model_folder(Encoder(EncoderConfig(tiny())).eval(), tmp_path / str(trained), Origin(trained=trained))
        card = (tmp_path / str(trained) / "README.md").read_text()
        assert ("similar theme, course of action and outcome" in card) == trained
        assert ("not trained on stories" in card) != trained
        assert "trust_remote_code" not in card


def test_a_projection_is_rounded_to_half_precision_only_when_exported(tiny, tmp_path):
    encoder = Encoder(EncoderConfig(tiny(), dtype="bfloat16")).eval()
    encoder.attach(build_head("projection", 32, noise=0.3))
    before = embed_stories(encoder, TEXTS, progress=False).embeddings
    encoder.save(tmp_path)
    assert abs(embed_stories(load_encoder(str(tmp_path)), TEXTS, progress=False).embeddings - before).max() < 0.02


def test_an_encoder_is_exported_with_its_postprocessing_and_stays_as_it_is(tiny, world_files, tmp_path):
    encoder = load(tiny(), postprocess="center,truncate:8", fit_on=str(world_files / "train.jsonl"))
    fitted = encoder.fitted_for([])
    before = fitted.embed(TEXTS)
    module = fitted.module
    exported = export(fitted, tmp_path / "model")

    assert str(exported) == f"{tmp_path}/model: 8 dimensions, 96 tokens at most"
    np.testing.assert_allclose(load(exported.path).embed(TEXTS), before, atol=1e-6)  # rounding of float32
    assert fitted.module is module
    np.testing.assert_array_equal(fitted.embed(TEXTS), before)


def test_truncation_needs_no_stories_and_equals_truncate_dim(tiny, tmp_path, capsys):
    export(tiny(), tmp_path / "whole")
    exported = export(load(tiny(), postprocess="truncate:8"), tmp_path / "model")
    whole = SentenceTransformer(str(tmp_path / "whole"), truncate_dim=8, device="cpu")
    expected = whole.encode(TEXTS, normalize_embeddings=True)

    assert exported.dimension == 8
    for found in (load(exported.path).embed(TEXTS), load(tiny(), postprocess="truncate:8").embed(TEXTS)):
        np.testing.assert_allclose(found, expected, atol=1e-5)  # rounding of float32
    assert "fitted on" not in capsys.readouterr().err
    assert "first 8 dimensions, normalized" in (exported.path / "README.md").read_text()


def test_a_check_compares_with_sentence_transformers(tiny, make, tmp_path):
    export(tiny(), tmp_path / "model")
    short = make("short.txt", "A fox runs.")
    long = make("long.txt", "A fox runs to the river. " * 40)

    assert check_export(tmp_path / "model", short) <= 1e-5
    with refused("sentence_transformers_differ", folder=tmp_path / "model"):  # which truncates long stories
        check_export(tmp_path / "model", long)
