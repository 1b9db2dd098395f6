"""Text of files in any encoding."""

import codecs
import re
from contextlib import suppress
from pathlib import Path
from typing import IO, NamedTuple

from charset_normalizer import from_bytes

from narrlit.data.row_file import ReadingNote
from narrlit.errors import DataError
from narrlit.preprocessing.languages import detect_language

CODE_PAGES = {"cp1250": ("bs", "cs", "hr", "hu", "pl", "ro", "sk", "sl"), "cp1254": ("tr",), "cp1257": ("lt", "lv")}
"""Code pages of Windows other than cp1252, with the languages in Latin script that they encode."""
OLD_ENCODINGS = ("mac_roman", "cp850")
"""Encodings of texts in Latin script from the systems before Windows and Unicode."""
LEAST_PLAUSIBLE, RARER_CAPITAL = 0.5, 0.9
"""Plausibility that a text has at least, and of a capital letter in place of a small one."""
LATIN_SHARE = 0.25
"""Share of non-ASCII bytes below which a text is in Latin script; in other scripts, most bytes are non-ASCII."""
_BEYOND_ASCII = re.compile(r"(.?)([^\x00-\x7f])(?=(.?))", re.DOTALL)
_INSIDE_WORDS = frozenset("’–—…·\u00a0\u00ad")
_PUNCTUATION = frozenset("“”„‘‚«»‹›§°¿¡€£")
# Control characters that do not occur in text.
_BINARY = re.compile("[\0-\x08\x0e-\x1a\x1c-\x1f]")


class DecodedText(NamedTuple):
    """A text, and the encoding of its bytes."""

    text: str
    encoding: str


def decoded(path: Path, content: bytes, notes: list[ReadingNote]) -> str:
    """Decode a file's text, and note an encoding other than UTF-8.

    Raises:
        DataError: if it is not text.
    """
    with suppress(UnicodeDecodeError):
        text = content.decode("utf-8-sig")
        if 10 * text.count("\0") <= len(text):
            return text
    text, encoding = detected(content)
    if _BINARY.search(text):
        raise DataError("not_text", path=path)
    notes.append(ReadingNote.of("read_as", encoding=encoding))
    return text


def encoding_of(file: IO[bytes]) -> str:
    """Detect the encoding of a text file by its first megabyte."""
    beginning = file.read(2**20)
    file.seek(0)
    try:
        codecs.getincrementaldecoder("utf-8-sig")().decode(beginning)
    except UnicodeDecodeError:
        return detected(beginning).encoding
    return "utf-8-sig"


def detected(content: bytes) -> DecodedText:
    """Decode text that is not UTF-8, and return it with its encoding; a NUL if the encoding can't be detected."""
    beginning = content[:100_000]
    beyond_ascii = sum(byte > 127 for byte in beginning)
    if beyond_ascii < LATIN_SHARE * len(beginning) and b"\0" not in content:
        # Latin script: charset-normalizer can't tell these code pages apart, but the language can.
        texts = []
        for encoding in (_code_page(content), *OLD_ENCODINGS):
            with suppress(UnicodeDecodeError):
                texts.append(DecodedText(content.decode(encoding), encoding))
        best = max(texts, key=lambda text: _plausibility(text.text[:100_000]))
        if _plausibility(best.text[:100_000]) > LEAST_PLAUSIBLE:
            return best

    match = from_bytes(content).best()
    if match is None:
        return DecodedText("\0", "")
    return DecodedText(str(match), match.encoding)


def _plausibility(text: str) -> float:
    """Compute the share of characters beyond ASCII that stand where such letters and punctuation do, from 0 to 1."""
    plausible = 0.0
    characters = list(_BEYOND_ASCII.finditer(text))
    for match in characters:
        before, character, after = match.groups()
        if character.isalpha():
            plausible += 1 if character.islower() else RARER_CAPITAL * (not before.islower())
        else:
            is_inside = before.isalpha() and after.isalpha()
            plausible += character in _INSIDE_WORDS or (character in _PUNCTUATION and not is_inside)
    return plausible / max(len(characters), 1)


def _code_page(content: bytes) -> str:
    """Return the code page of Windows in which a text in Latin script is in one of its languages, or else cp1252."""
    for name, languages in CODE_PAGES.items():
        if detect_language(content[:10_000].decode(name, "replace")) in languages:
            return name
    return "cp1252"
