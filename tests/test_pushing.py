"""Uploads: every file arrives unchanged and privately, nothing else is sent, and no output contains the token."""

import os
import shutil
import subprocess
import sys

import pytest
from deferred import deferred
from fake_hub import TOKEN, Repository, fake_hub
from head_encoders import sentence_encoder, view_encoder
from huggingface_hub import ModelCard
from peft import LoraConfig
from refusals import refused
from sentence_transformers import SentenceTransformer

import narrlit as library
from narrlit.commands.export import export
from narrlit.exporting.folders import write_model_folder
from narrlit.exporting.hub import push
from narrlit.exporting.origin import Origin

NAME = "ann/plots"


@pytest.fixture(scope="module")
def written(tiny, tmp_path_factory):
    """Folder of an exported model."""
    return library.export(tiny(), tmp_path_factory.mktemp("exported") / "model", name=NAME).path


@pytest.fixture
def folder(written, tmp_path):
    """A copy of it, which a test may change."""
    return shutil.copytree(written, tmp_path / "model")


@pytest.fixture
def hub(monkeypatch):
    """A hub that huggingface_hub takes for its own, with a token."""
    with fake_hub() as running:
        monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", running.url)
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_DISABLE_XET", True)
        monkeypatch.setenv("HF_TOKEN", TOKEN)
        yield running


@pytest.fixture
def no_token(monkeypatch, tmp_path):
    monkeypatch.delenv("HF_TOKEN", raising=False)
    monkeypatch.delenv("HUGGING_FACE_HUB_TOKEN", raising=False)
    monkeypatch.setattr("huggingface_hub.constants.HF_TOKEN_PATH", str(tmp_path / "no-token"))


def contents(folder):
    paths = [path for path in folder.rglob("*") if path.is_file()]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


def test_every_file_arrives_unchanged_and_privately(hub, folder):
    pushed = push(folder, NAME)
    repository = hub.repositories[NAME]

    assert repository.private
    assert repository.files == contents(folder)
    assert "model.safetensors" in repository.files
    assert {file.path: file.size for file in pushed.files} == {k: len(v) for k, v in repository.files.items()}
    assert (pushed.address, pushed.private, pushed.sent) == (f"{hub.url}/{NAME}", True, True)
    assert repository.messages == [f"Upload with narrlit {library.__version__}"]

    for _, path, authorization in hub.requests:
        assert authorization == (None if path.startswith("/storage/") else f"Bearer {TOKEN}"), path


def test_a_model_is_public_only_on_request(hub, folder):
    pushed = push(folder, NAME, public=True)

    assert hub.repositories[NAME].private is False
    assert pushed.private is False


@pytest.mark.parametrize("private", [True, False])
def test_an_existing_model_is_updated_but_never_shown_to_others(hub, folder, private):
    hub.repositories[NAME] = Repository(private)
    push(folder, NAME, public=not private)
    assert hub.repositories[NAME].files == contents(folder)

    hub.repositories[NAME] = Repository(private)
    with refused("private_on_hub" if private else "public_on_hub", name=NAME):
        push(folder, NAME, public=private)
    assert hub.repositories[NAME].files == {}


def test_a_dry_run_lists_every_file_and_sends_nothing(hub, no_token, folder, narrlit):
    found = narrlit("export", folder, "--push", NAME, "--dry-run")

    assert found.code == 0, found.err
    for path, content in contents(folder).items():
        assert f"{len(content):>13,}  {path}\n" in found.out
    assert found.out.endswith(f"{hub.url}/{NAME} (private): {len(contents(folder))} files, dry run, nothing was sent\n")
    assert hub.requests == []


def test_a_model_is_exported_and_sent_by_one_command(hub, tiny, tmp_path, narrlit):
    found = narrlit("export", tiny(), "--out", tmp_path / "model", "--push", NAME, "--public")

    assert found.code == 0, found.err
    assert hub.repositories[NAME].files == contents(tmp_path / "model")
    assert 'SentenceTransformer("ann/plots")' in hub.repositories[NAME].files["README.md"].decode()
    assert hub.repositories[NAME].private is False


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({}, "out_or_push"),
        ({"out": "m", "public": True}, "options_need_option"),
        ({"push": NAME, "weights": "float16"}, "export_options_need_out"),
    ],
)
def test_options_that_do_not_apply_are_refused(folder, options, code):
    with refused(code):
        export(str(folder), encoder=deferred("export"), **options)


def test_a_model_that_is_no_exported_folder_is_exported_with_its_name_on_the_hub(hub):
    push("narrlit-mini", NAME)
    files = hub.repositories[NAME].files
    card = ModelCard(files["README.md"].decode())

    assert 'SentenceTransformer("ann/plots")' in card.text
    assert card.data.license == "cc-by-sa-4.0"
    assert "1_Pooling/config.json" in files


@pytest.mark.parametrize(
    "other",
    [".env", "optimizer.pt", "pytorch_model.bin", "token", "credentials.json", "checkpoints/last.ckpt", "inner/.env"],
)
def test_a_folder_with_other_files_is_refused_before_anything_is_sent(hub, folder, other):
    (folder / other).parent.mkdir(exist_ok=True)
    (folder / other).write_text("secret")
    with refused("other_files_in_model", folder=folder, files=[other]):
        push(folder, NAME)
    assert hub.requests == []


def test_a_folder_with_an_adapter_is_exported_first(tiny, tmp_path):
    model = SentenceTransformer(tiny(), device="cpu")
    model.add_adapter(LoraConfig(target_modules=["query"]))
    model.save(str(tmp_path / "adapted"))
    names = {file.path for file in library.push(tmp_path / "adapted", NAME, dry_run=True).files}

    assert "model.safetensors" in names
    assert not [name for name in names if "adapter" in name]


def test_exported_heads_are_models(tiny, tmp_path):
    for name, encoder in (("sentences", sentence_encoder(tiny())), ("views", view_encoder(tiny(), 16))):
        write_model_folder(encoder, tmp_path / name, Origin(trained=True))
        paths = {file.path for file in push(tmp_path / name, NAME, dry_run=True).files}
        assert {"heads.py", "inner/model.safetensors"} <= paths


@pytest.mark.parametrize(
    ("name", "code"),
    [("plots", "hub_name_without_owner"), ("ann/a b", "invalid_hub_name"), ("a/b/c", "invalid_hub_name")],
)
def test_a_name_without_owner_or_with_other_characters_is_refused(hub, folder, name, code):
    with refused(code):
        push(folder, name)
    assert hub.requests == []


def test_without_a_token_it_says_how_to_log_in(hub, no_token, folder):
    with refused("no_hub_token"):
        push(folder, NAME)
    assert hub.requests == []


@pytest.mark.parametrize(
    ("status", "advice"),
    [(401, "the token is not valid"), (403, "the token may not write to ann"), (500, "repeat the command later")],
)
def test_a_refusal_of_the_hub_is_one_line_with_what_to_do(hub, folder, narrlit, status, advice):
    hub.refusal = (status, "not today")
    found = narrlit("export", folder, "--push", NAME)

    assert found.code == 2
    assert found.err.count("\n") == 1
    assert f"{hub.url}: HTTP {status}, not today; " in found.err
    assert advice in found.err
    assert TOKEN not in found.out + found.err


def test_without_network_it_names_the_hub(hub, folder, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:1")
    with refused("hub_unreachable", hub="http://127.0.0.1:1"):
        push(folder, NAME)


def test_offline_mode_is_respected(hub, folder, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with refused("uploads_prevented"):
        push(folder, NAME)
    assert hub.requests == []


@pytest.mark.long
@pytest.mark.slow
def test_the_command_takes_hub_and_token_from_the_environment_and_prints_no_token(hub, folder):
    settings = {"HF_ENDPOINT": hub.url, "HF_TOKEN": TOKEN, "HF_HUB_OFFLINE": "0", "HF_HUB_DISABLE_XET": "1"}
    command = [sys.executable, "-m", "narrlit", "export", str(folder), "--push", NAME, "--public"]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **settings}, check=False)

    assert done.returncode == 0, done.stderr
    assert f"{hub.url}/{NAME} (public): {len(contents(folder))} files, sent\n" in done.stdout
    assert TOKEN not in done.stdout + done.stderr
    assert hub.repositories[NAME].files == contents(folder)
    assert hub.repositories[NAME].private is False
