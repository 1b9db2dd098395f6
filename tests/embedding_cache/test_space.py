"""What an embedding depends on: spaces, their keys and folders."""

import dataclasses
import shutil

import pytest

from narrlit.embedding_cache.space import EmbeddingSpace, content_keys, folder_digest
from narrlit.embedding_cache.storage import open_cache
from narrlit.models.config import EncoderConfig, Fusion, Prompts

CHANGES = {
    "model": "org/other",
    "revision": "abc",
    "pooling": "cls",
    "normalize": None,
    "max_length": 96,
    "dtype": "bfloat16",
    "quantization": "int8",
}


def check_apart(one, other, folder):
    """Two spaces share neither a folder nor a key."""
    assert open_cache(folder, one).folder != open_cache(folder, other).folder
    assert one.keys("", ["a"]) != other.keys("", ["a"])


def test_keys_are_those_of_space_and_text():
    texts = ["a", "b", "", "a\ud800"]
    assert len(set(content_keys({"model": "m"}, texts))) == 4
    assert content_keys({"model": "m", "x": 1}, texts) == content_keys({"x": 1, "model": "m"}, texts)
    assert not set(content_keys({"model": "m"}, texts)) & set(content_keys({"model": "m", "prompt": ""}, texts))
    assert content_keys({}, ["{}"]) != content_keys({"{}": 0}, [""])


def test_each_setting_of_a_model_changes_the_folder_and_the_key(tmp_path):
    plain = EmbeddingSpace.of_model("m", "f", long="windows")
    fusion = Fusion(1.0, 0.0, 0.0, 0.0)
    others = [
        EmbeddingSpace.of_model("n", "f", long="windows"),
        EmbeddingSpace.of_model("m", "g", long="windows"),
        EmbeddingSpace.of_model("m", "f", long="truncate"),
        EmbeddingSpace.of_model("m", "f", long="windows", max_length=96),
        EmbeddingSpace.of_model("m", "f", long="windows", precision="bf16"),
        EmbeddingSpace.of_model("m", "f", long="windows", fusion=fusion),
    ]
    for other in others:
        check_apart(plain, other, tmp_path)


def test_each_setting_of_a_teacher_changes_the_key():
    plain = EncoderConfig("org/name")
    spaces = [
        EmbeddingSpace.of_teacher("round_1", "w", plain, max_length=96, normalized=True),
        EmbeddingSpace.of_teacher("round_1", "v", plain, max_length=96, normalized=True),
        EmbeddingSpace.of_teacher("round_1", "w", plain, max_length=64, normalized=True),
        EmbeddingSpace.of_teacher("round_1", "w", plain, max_length=96, normalized=False),
        EmbeddingSpace.of_teacher("round_1", "w", EncoderConfig("org/other"), max_length=96, normalized=True),
    ]

    assert len({space.keys("", ["a"])[0] for space in spaces}) == len(spaces)


@pytest.mark.parametrize(("field", "value"), [*CHANGES.items(), ("stored", "float16")])
def test_each_setting_changes_the_folder_and_the_key(tmp_path, field, value):
    plain = EncoderConfig("org/name")
    changed = plain if field == "stored" else dataclasses.replace(plain, **{field: value})
    one = EmbeddingSpace.of_frozen(plain, "float32")
    other = EmbeddingSpace.of_frozen(changed, value if field == "stored" else "float32")

    assert {name for name in one.record if one.record[name] != other.record[name]} == {field}

    check_apart(one, other, tmp_path)


def test_what_does_not_change_embeddings_does_not_change_the_space():
    plain = EmbeddingSpace.of_frozen(EncoderConfig("org/name"), "float32")
    same = EncoderConfig("org/name", dropout=0.3, packed=False, token_budget=99, prompts=Prompts(story="p"))
    assert EmbeddingSpace.of_frozen(same, "float32") == plain  # a prompt changes the keys alone


@pytest.fixture
def model(tmp_path):
    folder = tmp_path / "model"
    (folder / "1_Pooling").mkdir(parents=True)
    (folder / "model.safetensors").write_bytes(bytes(range(256)))
    (folder / "1_Pooling" / "config.json").write_text("{}")
    return folder


def test_a_model_folder_is_identified_by_its_files_at_any_path(model, tmp_path):
    copy = tmp_path / "far" / "away" / "model"
    shutil.copytree(model, copy)
    (copy / "README.md").write_text("# A model")
    (copy / ".cache").mkdir()
    (copy / ".cache" / "x.json").write_text("{}")
    spaces = [EmbeddingSpace.of_frozen(EncoderConfig(str(folder)), "float32") for folder in (model, copy)]

    assert spaces[0] == spaces[1]

    digests = {folder_digest(model)}
    changed = bytearray((model / "model.safetensors").read_bytes())
    changed[100] ^= 1
    (model / "model.safetensors").write_bytes(changed)
    digests.add(folder_digest(model))
    (model / "1_Pooling").rename(model / "2_Pooling")
    digests.add(folder_digest(model))
    # The same bytes in all, cut into files at another place.
    (model / "more").write_bytes(changed[-1:])
    (model / "model.safetensors").write_bytes(changed[:-1])
    digests.add(folder_digest(model))

    assert len(digests) == 4
