"""Prompts of language models: one text file each, the package's or a user's own."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from importlib.resources import files
from itertools import dropwhile
from pathlib import Path

from narrlit.errors import OptionError, reading

_END_OF_HEADER = "---"
_FIELD = re.compile(r"\{([A-Za-z_]\w*)\}")

FIELDS = {
    "judge": {
        "anchor_text": "anchor",
        "text_a": "A",
        "text_b": "B",
        "similarity_a": "similarity_a",
        "similarity_b": "similarity_b",
        "difference": "difference",
    },
    "negatives": {"anchor_text": "anchor"},
    "views": {"text": "story"},
}
"""Fields that a prompt may contain, by the first word of its name, and their keys in the JSON of a user message."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt's name, its text without the header, and the text's SHA-256 in hex.

    Without `fields` the text is the system message; with them it is the user message, in which they are filled.
    """

    name: str
    text: str
    digest: str
    fields: Mapping[str, str] = field(default_factory=dict)

    def content(self, values: Mapping[str, object]) -> str:
        """Format the user message: the text with its fields filled, or values as JSON, so that none leaves its place.

        >>> Prompt("judge", "{text_a} or {text_b}?", "", FIELDS["judge"]).content({"A": "{text_b}", "B": "x"})
        '{text_b} or x?'
        """
        if not self.fields:
            return json.dumps(values, ensure_ascii=False)

        def value(match: re.Match[str]) -> str:
            key = self.fields[match[1]]
            return str(values[key])

        return _FIELD.sub(value, self.text)

    def messages(self, content: str) -> list[dict[str, str]]:
        """List the messages of a chat whose user message is `content`."""
        user = {"role": "user", "content": content}
        return [user] if self.fields else [{"role": "system", "content": self.text}, user]


def load_prompt(name: str, path: str | None = None) -> Prompt:
    """Read the package's prompt of a name, such as `views`, or the user's own file.

    A file may begin with a header: lines that begin with `#`, up to a line `---`. The header and the last line break
    are neither sent nor part of the digest.

    Raises:
        OptionError: if there is no such prompt, or the file can't be read, is not UTF-8 or empty, or has fields: an
            unknown one, or not those of all stories.
    """
    if path is None and name not in packaged_prompts():
        raise OptionError("unknown_prompt", prompt=name, known=list(packaged_prompts()))
    file = files("narrlit.prompts") / f"{name}.txt" if path is None else Path(path)
    label = path or name
    with reading("unreadable_prompt", label, error=OptionError):
        text = _without_header(file.read_bytes().decode("utf-8-sig").replace("\r\n", "\n"))
    if not text.strip():
        raise OptionError("empty_prompt", path=label)
    fields = FIELDS.get(name.partition("_")[0], {})
    fields_in_text = set(_FIELD.findall(text))
    if fields_in_text:
        _check_fields(label, fields_in_text, fields)
    return Prompt(name, text, sha256(text.encode()).hexdigest(), fields if fields_in_text else {})


def _check_fields(label: str, fields_in_text: set[str], fields: Mapping[str, str]) -> None:
    """Refuse a prompt with an unknown field, or without the fields of all stories; `label` names it in messages."""
    names = ", ".join(f"{{{name}}}" for name in fields)
    unknown = sorted(fields_in_text - set(fields))
    if unknown:
        raise OptionError("unknown_prompt_field", path=label, field=unknown[0], known=names)
    for name in fields:
        if "text" in name and name not in fields_in_text:
            raise OptionError("missing_prompt_field", path=label, field=name, known=names)


def packaged_prompts() -> list[str]:
    """List the names of the package's prompts."""
    names = []
    for file in files("narrlit.prompts").iterdir():
        if file.name.endswith(".txt"):
            names.append(file.name.removesuffix(".txt"))
    return sorted(names)


def _without_header(text: str) -> str:
    r"""Return the text behind the header, if there is one, and without its last line break.

    >>> _without_header("# Source: a paper\n---\nJudge.\n"), _without_header("# Rules\nJudge.\n")
    ('Judge.', '# Rules\nJudge.')
    """
    lines = list(dropwhile(lambda line: line.startswith("#"), text.split("\n")))
    if lines and lines[0].rstrip() == _END_OF_HEADER:
        text = "\n".join(lines[1:])
    return text.removesuffix("\n")
