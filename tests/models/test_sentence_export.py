"""Encoders that read sentences as folders: without this package, by this package, and by its commands."""

import ast
import json
from pathlib import Path

import numpy as np
import pytest
import torch
from adapted_encoders import adapted, move
from elsewhere import used_elsewhere
from safetensors.torch import load_file, save_file
from sentence_encoders import PROMPTS, ROLES, TEXTS, head, sentence_encoder

from narrlit.errors import ModelError
from narrlit.export import export
from narrlit.models.config import Prompts
from narrlit.models.embedding import embed
from narrlit.models.sentence_encoder import SentenceEncoder, is_sentence_encoder, load_sentence_encoder
from narrlit.models.source import load_encoder

ELSEWHERE = """
found = {
    "story": model.encode(texts),
    "one_by_one": model.encode(texts, batch_size=1),
    "turned": model.encode(texts[::-1], batch_size=2)[::-1],
    "anchor": model.encode_query(texts),
    "candidate": model.encode_document(texts),
    "other_prompt": model.encode(texts, prompt="passage: "),
}
features = model.train().preprocess(texts[:1], prompt="text: ")
model(features)["sentence_embedding"][0, 0].backward()
assert model[0].head.lstm.weight_ih_l0.grad.abs().sum() > 0
model.save(folder + "-again")
again = SentenceTransformer(folder + "-again", trust_remote_code=True, device="cpu")
found["again"] = again.encode(texts)
assert (again.max_seq_length, again.get_embedding_dimension()) == (80, 12)
again.max_seq_length = 6
found["shorter"] = again.encode(texts)
try:
    model.encode(["A b.", " "])
except ValueError as error:
    assert "without a sentence" in str(error)
else:
    raise AssertionError("a blank story was embedded")
"""


@pytest.fixture
def exported(tiny, tmp_path):
    export(sentence_encoder(tiny(), prompts=PROMPTS, max_length=80), tmp_path / "out", "a run")
    return tmp_path / "out"


@pytest.fixture
def plain(tiny, tmp_path):
    """A folder with one prompt for all roles."""
    export(sentence_encoder(tiny(), prompts=Prompts(story="text: ")), tmp_path / "plain", "a run")
    return tmp_path / "plain"


@pytest.mark.slow
def test_sentence_transformers_alone_gives_the_same_vectors(exported, tiny, tmp_path):
    encoder = sentence_encoder(tiny(), prompts=PROMPTS, max_length=80)
    ours = {role: embed(encoder, TEXTS, role, progress=False)[0] for role in ROLES}
    theirs = used_elsewhere(exported, TEXTS, ELSEWHERE, tmp_path)
    for role in ROLES:
        assert abs(theirs[role] - ours[role]).max() < 1e-5, role
    for name in ("one_by_one", "turned", "again"):
        assert abs(theirs[name] - ours["story"]).max() < 1e-5, name
    assert abs(theirs["other_prompt"] - ours["candidate"]).max() < 1e-5
    short = load_sentence_encoder(exported, max_length=6).eval()
    assert abs(theirs["shorter"] - embed(short, TEXTS, progress=False)[0]).max() < 1e-5


def test_its_code_needs_nothing_of_this_package(exported):
    names = {path.stem for path in exported.glob("*.py")}
    assert names == {"sentence_sequence", "inner_model", "described", "bilstm", "sentences", "words", "errors"}
    for path in exported.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom):
                assert node.module in names if node.level else not node.module.startswith("narrlit")
            if isinstance(node, ast.Import):
                assert not any(alias.name.startswith("narrlit") for alias in node.names)
    (module,) = json.loads((exported / "modules.json").read_text())
    assert module["type"] == "sentence_sequence.SentenceSequence"


def test_the_card_tells_of_the_code_and_other_cards_do_not(exported, narrlit, tiny, tmp_path):
    assert 'SentenceTransformer("out", trust_remote_code=True)' in (exported / "README.md").read_text()
    assert narrlit("export", tiny(), "--out", "other").code == 0
    assert "trust_remote_code" not in (tmp_path / "other/README.md").read_text()


@pytest.mark.parametrize("trust", [True, False])
def test_it_loads_here_with_the_same_vectors_and_runs_no_code_of_the_folder(exported, tiny, tmp_path, trust):
    (exported / "sentence_sequence.py").write_text(f"open({str(tmp_path / 'run.txt')!r}, 'w')")
    loaded = load_encoder(str(exported), trust_remote_code=trust)
    assert not (tmp_path / "run.txt").exists()
    assert not loaded.training
    encoder = sentence_encoder(tiny(), prompts=PROMPTS, max_length=80)
    for role in ROLES:
        expected, _ = embed(encoder, TEXTS, role, progress=False)
        assert abs(embed(loaded, TEXTS, role, progress=False)[0] - expected).max() < 1e-6
    assert (loaded.max_length, loaded.head.config) == (80, encoder.head.config)


def test_a_length_goes_to_the_sentences(exported):
    assert load_encoder(str(exported), max_length=7).max_length == 7


def test_only_its_own_folders_are_taken_for_its_own(exported, tiny):
    assert is_sentence_encoder(exported)
    assert not is_sentence_encoder(exported / "inner")
    assert not is_sentence_encoder(Path(tiny()))


def test_adapters_are_merged_into_the_folder(tiny, tmp_path):
    encoder = SentenceEncoder(move(adapted(tiny)), head()).eval()
    before, _ = embed(encoder, TEXTS, progress=False)
    export(encoder, tmp_path / "out", "a run")
    assert not [name for name in load_file(tmp_path / "out/inner/model.safetensors") if "lora" in name]
    assert abs(embed(load_encoder(str(tmp_path / "out")), TEXTS, progress=False)[0] - before).max() < 1e-5


GOOD = {"dimension": 32, "hidden": 7, "layers": 2, "dropout": 0.5, "output": 12}


@pytest.mark.parametrize(
    "described",
    [
        "nonsense",
        "[1]",
        "3",
        json.dumps({k: v for k, v in GOOD.items() if k != "dimension"}),
        json.dumps({**GOOD, "colour": "red"}),
        json.dumps({**GOOD, "hidden": 0}),
        json.dumps({**GOOD, "hidden": "7"}),
        json.dumps({**GOOD, "layers": 2.5}),
        json.dumps({**GOOD, "dimension": -1}),
    ],
)
def test_a_broken_description_is_named_in_one_line(exported, described):
    (exported / "bilstm.json").write_text(described)
    with pytest.raises(ModelError, match=r"bilstm\.json: it does not describe") as caught:
        load_encoder(str(exported))
    assert "\n" not in str(caught.value)


def _shorten(path):
    path.write_bytes(path.read_bytes()[:100])


def _lose_a_weight(path):
    weights = load_file(path)
    weights.pop("linear.bias")
    save_file(weights, path)


def _change_a_shape(path):
    save_file({**load_file(path), "linear.bias": torch.zeros(3)}, path)


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (Path.unlink, "can't be read"),
        (_shorten, "can't be read"),
        (_lose_a_weight, "are not those"),
        (_change_a_shape, "are not those"),
    ],
)
def test_broken_weights_are_named_in_one_line(exported, spoil, words):
    spoil(exported / "bilstm.safetensors")
    with pytest.raises(ModelError, match=rf"bilstm\.safetensors: .*{words}") as caught:
        load_encoder(str(exported))
    assert "\n" not in str(caught.value)


def test_a_lost_or_other_model_of_sentences_is_named(exported, tmp_path):
    (exported / "inner").rename(tmp_path / "gone")
    with pytest.raises(ModelError, match="out/inner"):
        load_encoder(str(exported))


def test_commands_take_the_folder_for_a_model(plain, narrlit, world_files, tmp_path):
    encoder = load_encoder(str(plain))
    stories, triples = world_files / "stories.jsonl", world_files / "validation.jsonl"
    assert narrlit("embed", stories, "--model", plain, "--out", "v.npy").code == 0
    texts = [json.loads(line)["text"] for line in stories.open()]
    assert np.array_equal(np.load("v.npy"), embed(encoder, texts, progress=False)[0])
    found = narrlit("evaluate", triples, "--model", plain, "--max-length", 6, "--json")
    assert found.code == 0, found.err
    assert f"{json.loads(found.out)['truncated']} sentences were longer than 6 tokens" in found.err
    for arguments in (
        ["submit", "--model", plain, "--track-a", triples, "--track-b", stories],
        ["mine", world_files / "train.jsonl", "--model", plain, "--out", "mined.jsonl"],
        ["export", plain, "--out", "copy"],
    ):
        found = narrlit(*arguments)
        assert found.code == 0, found.err
    assert np.array_equal(embed(load_encoder("copy"), texts, progress=False)[0], np.load("v.npy"))


def test_commands_refuse_what_it_cannot_do(exported, narrlit, world_files):
    stories, triples = world_files / "stories.jsonl", world_files / "validation.jsonl"
    for arguments, words in (
        (["embed", stories, "--model", exported, "--out", "v.npy"], "query: "),
        (["evaluate", triples, "--model", exported, "--scorer", "meanmax"], "out/inner"),
    ):
        found = narrlit(*arguments)
        assert found.code == 2
        assert words in found.err
        assert "Traceback" not in found.err
