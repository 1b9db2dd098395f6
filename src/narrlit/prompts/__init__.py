"""Prompts of language models: one text file each, the package's or a user's own."""

from dataclasses import dataclass
from hashlib import sha256
from importlib.resources import files
from pathlib import Path

from narrlit.errors import OptionError, reading

_END_OF_HEADER = "---"


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt's name, its text without the header, and the text's SHA-256 in hex."""

    name: str
    text: str
    digest: str


def load_prompt(name: str, path: str | None = None) -> Prompt:
    """Read the package's prompt of a name, such as `views`, or the user's own file.

    A file may begin with a header: lines that begin with `#`, up to a line `---`. It is for people, and neither sent
    nor part of the digest; nor is the last line break.

    Raises:
        OptionError: if there is no such prompt, or the file can't be read, is not UTF-8 or empty.
    """
    if path is None and name not in packaged_prompts():
        raise OptionError(f"no prompt {name!r}; there are {', '.join(packaged_prompts())}")
    file = files("narrlit.prompts") / f"{name}.txt" if path is None else Path(path)
    with reading("prompt", path or name, "save the file as UTF-8 text", OptionError):
        text = _without_header(file.read_bytes().decode("utf-8-sig").replace("\r\n", "\n"))
    if not text.strip():
        raise OptionError(f"{path or name}: the prompt is empty; write what the model is to do, below the header")
    return Prompt(name, text, sha256(text.encode()).hexdigest())


def packaged_prompts() -> list[str]:
    """List the names of the package's prompts."""
    names = (entry.name for entry in files("narrlit.prompts").iterdir())
    return sorted(name.removesuffix(".txt") for name in names if name.endswith(".txt"))


def _without_header(text: str) -> str:
    r"""Return the text behind the header, if there is one, and without its last line break.

    >>> _without_header("# Source: a paper\n---\nJudge.\n"), _without_header("# Rules\nJudge.\n")
    ('Judge.', '# Rules\nJudge.')
    """
    lines = text.split("\n")
    header = next((number for number, line in enumerate(lines) if not line.startswith("#")), len(lines))
    if header < len(lines) and lines[header].rstrip() == _END_OF_HEADER:
        text = "\n".join(lines[header + 1 :])
    return text.removesuffix("\n")
