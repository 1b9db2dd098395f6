"""Upload of exported models to a hub."""

import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from huggingface_hub import HfApi, get_token
from huggingface_hub.errors import HfHubHTTPError, HFValidationError, OfflineModeIsEnabled
from huggingface_hub.utils import validate_repo_id  # type: ignore[attr-defined]  # documented, not in `__all__`

from narrlit import __version__
from narrlit.console import counted
from narrlit.errors import ModelError, NarrlitError, OptionError, printable, reason
from narrlit.exporting.folders import MODULES, export
from narrlit.models.pretrained import ADAPTER_SETTINGS

MODEL_FOLDERS = re.compile(r"inner|onnx|openvino|\d+_[A-Z]\w*")
MODEL_FILES = re.compile(
    r"README\.md|LICENSE(\.md|\.txt)?|\.gitattributes|modules\.json|views\.json|bilstm\.json|heads\.py|sentences\.py|words\.py"
    r"|config\.json|config_sentence_transformers\.json|sentence_\w+_config\.json|generation_config\.json"
    r"|model(-\d+-of-\d+)?\.safetensors|model\.safetensors\.index\.json"
    r"|model(_fp16|_qint8_quantized)?\.onnx|openvino_model(_fp16)?\.(xml|bin)"
    r"|tokenizer\.json|tokenizer_config\.json|special_tokens_map\.json|added_tokens\.json|vocab\.json|vocab\.txt"
    r"|merges\.txt|tokenizer\.model|spiece\.model|sentencepiece\.bpe\.model|chat_template\.jinja"
)
"""Names of the folders and files of a model; a folder with others, such as checkpoints or keys, is refused."""


@dataclass(frozen=True)
class ModelFile:
    """File of a model.

    Attributes:
        path: path in the folder, with slashes.
        size: size in bytes.
    """

    path: str
    size: int


@dataclass(frozen=True)
class PushedModel:
    """Model on a hub, or what would be sent there.

    Attributes:
        name: name of the model on the hub, OWNER/NAME.
        address: address of its page.
        private: only its owner can see it.
        files: all files.
        sent: False after a dry run.
    """

    name: str
    address: str
    private: bool
    files: tuple[ModelFile, ...]
    sent: bool

    @property
    def size(self) -> int:
        """Size of all files in bytes."""
        return sum(file.size for file in self.files)

    def __str__(self) -> str:
        """Format all files with their sizes, then the address on one line."""
        lines = [f"{file.size:>13,}  {file.path}" for file in self.files]
        visibility = "private" if self.private else "public"
        sent = "sent" if self.sent else "dry run, nothing was sent"
        return "\n".join([*lines, f"{self.address} ({visibility}): {counted(len(self.files), 'file')}, {sent}"])


def push(model: str | PathLike[str], name: str, *, public: bool = False, dry_run: bool = False) -> PushedModel:
    """Upload a model to a hub, privately; a model that is no exported folder is exported first.

    The hub is Hugging Face's, or that of the environment variable HF_ENDPOINT. The token comes from HF_TOKEN or from
    `hf auth login`.

    Args:
        model: an exported folder; or a run, a checkpoint or any other model that `narrlit.export` takes.
        name: name of the model on the hub, OWNER/NAME; an existing model is updated.
        public: everybody can see the model; by default only its owner can.
        dry_run: only list the files with their sizes in bytes; nothing is sent, and no token is needed.

    Returns:
        A `PushedModel`: `.address`, `.files`, `.private`, `.sent`.

    Raises:
        ModelError: if the model can't be loaded, or the hub can't be reached or refuses the upload.
        OptionError: if the name has no owner or is invalid, there is no token, the folder contains files that are no
            part of a model, or the model on the hub is public and should be private, or the reverse.

    >>> pushed = push("minilm", "ann/model", dry_run=True)
    >>> pushed.private, pushed.sent, pushed.files[0].path
    (True, False, '1_Pooling/config.json')
    """
    _check_name(name)
    if not dry_run and get_token() is None:
        raise OptionError("no_hub_token")
    if (Path(model) / MODULES).is_file() and not (Path(model) / ADAPTER_SETTINGS).is_file():
        return _push_folder(Path(model), name, not public, dry_run)
    with tempfile.TemporaryDirectory() as temporary:
        exported = export(model, Path(temporary, "model"), name=name)
        return _push_folder(exported.path, name, not public, dry_run)


def _check_name(name: str) -> None:
    """Refuse a name that is invalid or has no owner."""
    if "/" not in name:
        raise OptionError("hub_name_without_owner", name=name)
    try:
        validate_repo_id(name)
    except HFValidationError as error:
        raise OptionError("invalid_hub_name", reason=reason(error)) from error


def _push_folder(folder: Path, name: str, private: bool, dry_run: bool) -> PushedModel:
    """Upload the files of an exported folder."""
    files = tuple(_files_of(folder))
    api = HfApi(library_name="narrlit", library_version=__version__)
    if not dry_run:
        with _hub_errors(api.endpoint, name):
            api.create_repo(name, private=private, exist_ok=True)
            _check_visibility(api, name, private)
            api.upload_folder(repo_id=name, folder_path=folder, commit_message=f"Upload with narrlit {__version__}")
    return PushedModel(name, f"{api.endpoint}/{name}", private, files, sent=not dry_run)


def _files_of(folder: Path) -> list[ModelFile]:
    """List the files of a model's folder; refuse a folder with others."""
    files, others = [], []
    for path in sorted(folder.rglob("*")):
        if not path.is_file():
            continue
        relative = path.relative_to(folder)
        is_in_model_folder = all(map(MODEL_FOLDERS.fullmatch, relative.parts[:-1]))
        if is_in_model_folder and MODEL_FILES.fullmatch(path.name):
            files.append(ModelFile(relative.as_posix(), path.stat().st_size))
        else:
            others.append(relative.as_posix())
    if others:
        raise OptionError("other_files_in_model", folder=folder, files=others[:5])
    return files


def _check_visibility(api: HfApi, name: str, private: bool) -> None:
    """Refuse to make files public that should be private, or the reverse, in a model that exists."""
    is_private = bool(api.model_info(name).private)
    if is_private != private:
        raise OptionError("private_on_hub" if is_private else "public_on_hub", name=name)


@contextmanager
def _hub_errors(endpoint: str, name: str) -> Iterator[None]:
    """Convert errors of requests to one line: the reply of the hub, and what to do."""
    try:
        yield
    except NarrlitError:
        raise
    except OfflineModeIsEnabled as error:
        raise ModelError("uploads_prevented") from error
    except HfHubHTTPError as error:
        status = error.response.status_code
        answer = printable(error.server_message or error.response.reason_phrase)
        owner, _, _ = name.partition("/")
        if status == 401:
            raise ModelError("hub_token_refused", hub=endpoint, answer=answer) from error
        if status == 403:
            raise ModelError("hub_write_refused", hub=endpoint, answer=answer, owner=owner) from error
        if status == 404:
            raise ModelError("no_owner_on_hub", hub=endpoint, answer=answer, owner=owner) from error
        raise ModelError("hub_failed", hub=endpoint, status=status, answer=answer) from error
    except ValueError as error:
        raise ModelError("upload_failed", name=name, reason=reason(error)) from error
    except Exception as error:  # the HTTP library's, which differs between releases of huggingface_hub
        raise ModelError("hub_unreachable", hub=endpoint, reason=reason(error)) from error
