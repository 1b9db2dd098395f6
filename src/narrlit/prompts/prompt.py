"""Prompts from files: those of the package, or a user's own."""

from dataclasses import dataclass
from hashlib import sha256
from importlib.resources import files
from pathlib import Path

from narrlit.errors import OptionError

_END_OF_HEADER = "---"


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt.

    Attributes:
        name: such as `views`; for messages and records.
        text: what the model is told, without the header.
        digest: SHA-256 of `text`, in hex.
    """

    name: str
    text: str
    digest: str


def load_prompt(name: str, path: str | None = None) -> Prompt:
    """Read a prompt.

    A file may begin with a header: lines that begin with `#`, up to a line `---`. It is for people, and neither sent
    nor part of the digest; nor is the last line break.

    Args:
        name: the package's prompt, such as `views`, or what to call the user's.
        path: the user's own file, read in the place of the package's.

    Raises:
        OptionError: if there is no such prompt, or the file can't be read, is not UTF-8 or says nothing.
    """
    text = _without_header(_packaged(name) if path is None else _own(Path(path)))
    if not text.strip():
        raise OptionError(f"{path or name}: the prompt is empty; write what the model is to do, below the header")
    return Prompt(name, text, sha256(text.encode()).hexdigest())


def packaged_prompts() -> list[str]:
    """The names of the package's prompts."""
    found = (entry.name for entry in files("narrlit.prompts").iterdir())
    return sorted(name.removesuffix(".txt") for name in found if name.endswith(".txt"))


def _packaged(name: str) -> str:
    if name not in packaged_prompts():
        raise OptionError(f"no prompt {name!r}; there are {', '.join(packaged_prompts())}")
    return _decoded((files("narrlit.prompts") / f"{name}.txt").read_bytes(), name)


def _own(path: Path) -> str:
    try:
        return _decoded(path.read_bytes(), str(path))
    except OSError as error:
        raise OptionError(f"cannot read the prompt {path}: {error.strerror}; check the path") from error


def _decoded(content: bytes, name: str) -> str:
    try:
        return content.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise OptionError(f"{name}: the prompt is not UTF-8; save the file as UTF-8") from error


def _without_header(text: str) -> str:
    r"""The text behind the header, if there is one, and without its last line break.

    >>> _without_header("# Source: a paper\n---\nJudge.\n"), _without_header("# Rules\nJudge.\n")
    ('Judge.', '# Rules\nJudge.')
    """
    lines = text.split("\n")
    header = next((number for number, line in enumerate(lines) if not line.startswith("#")), len(lines))
    if header < len(lines) and lines[header].rstrip() == _END_OF_HEADER:
        text = "\n".join(lines[header + 1 :])
    return text.removesuffix("\n")
