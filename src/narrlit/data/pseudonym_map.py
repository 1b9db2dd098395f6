"""A file's texts with placeholders for names, the map of what was replaced, and the way back."""

import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from narrlit.data.pseudonyms import check_scope
from narrlit.data.rows import RawFile, RawRow
from narrlit.data.text_fields import TextFields, Texts, text_fields, with_texts
from narrlit.errors import DataError
from narrlit.files import atomic_path
from narrlit.text.pseudonyms.options import Pseudonyms
from narrlit.text.pseudonyms.pseudonymiser import PseudonymisedGroup, open_backend, pseudonymise
from narrlit.text.pseudonyms.replacing import Replacement, restore

_FORMAT = "narrlit pseudonyms 1"


@dataclass(frozen=True)
class PseudonymisedFile:
    """What became of a file.

    Attributes:
        rows: the values of its rows, in order.
        map: what leads back, for `write_map`.
        names: how many names of each kind got a placeholder, summed over the mappings.
        places: how many times a name was replaced.
        without: how many rows hold no text.
    """

    rows: list[object]
    map: dict[str, Any]
    names: Counter[str]
    places: int
    without: int


def pseudonymise_file(raw: RawFile, options: Pseudonyms) -> PseudonymisedFile:
    """Put placeholders for the names in a file's texts; all else stays as it is.

    Texts of a row share a mapping if the scope is a triple; otherwise every text has its own. Views beside a story take
    over its mapping, which knows nothing of them: the story becomes what it does in a file without views.

    Raises:
        OptionError: if the scope is a triple and the file holds stories.
        DataError: if the file holds neither stories nor triples nor examples.
        ModelError, MissingExtraError: if the backend can't be had.
    """
    fields = text_fields(raw)
    if fields.kind == "stories":
        check_scope(options.scope, f"the stories of {raw.path}")
    split = [_groups(fields, row, options) for row in raw.rows]
    different = list(dict.fromkeys(tuple(group.values()) for groups in split for group in groups))
    done_once = pseudonymise(different, open_backend(options), led=fields.kind == "stories")
    found = dict(zip(different, done_once, strict=True))
    rows: list[object] = []
    entries = []
    names: Counter[str] = Counter()
    for row, groups in zip(raw.rows, split, strict=True):
        done = [(list(group), found[tuple(group.values())]) for group in groups]
        texts = {place: text for places, group in done for place, text in zip(places, group.texts, strict=True)}
        rows.append(with_texts(row.value, texts))
        entries.append(_entry(texts, done))
        names.update(placeholder.split("_")[0] for _, group in done for placeholder in group.entities)
    replaced = sum(len(made) for entry in entries for made in entry["replacements"].values())
    header = {"format": _FORMAT, "scope": options.scope, "backend": options.backend}
    return PseudonymisedFile(rows, {**header, "rows": entries}, names, replaced, split.count([]))


def write_map(path: str | Path, content: dict[str, Any]) -> None:
    """Write the map of a pseudonymised file as JSON."""
    with atomic_path(path) as temporary:
        temporary.write_text(json.dumps(content, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def restored(raw: RawFile, path: str | Path) -> list[object]:
    """The rows of a pseudonymised file with the texts they had before, to the letter.

    Args:
        raw: the pseudonymised file.
        path: its map.

    Raises:
        DataError: if the map can't be read or is another file's.
    """
    entries = _read_map(path)
    if len(entries) != len(raw.rows):
        raise DataError(
            f"{path} maps {len(entries)} rows but {raw.path} has {len(raw.rows)}; give the map of this file"
        )
    fields = text_fields(raw)
    return [_restored_row(raw, row, fields, entry, path) for row, entry in zip(raw.rows, entries, strict=True)]


def _groups(fields: TextFields, row: RawRow, options: Pseudonyms) -> list[Texts]:
    texts = fields.of(row.value)
    if not texts:
        return []
    if fields.kind == "stories" or options.scope == "triple":
        return [texts]
    return [{place: text} for place, text in texts.items()]


def _entry(texts: Texts, done: Sequence[tuple[list[str], PseudonymisedGroup]]) -> dict[str, Any]:
    made = {
        place: [[replacement.start, replacement.end, replacement.original] for replacement in each]
        for places, group in done
        for place, each in zip(places, group.replacements, strict=True)
        if each
    }
    groups = [{"fields": places, "entities": {k: list(v) for k, v in group.entities.items()}} for places, group in done]
    return {"digest": _digest(texts), "groups": groups, "replacements": made}


def _digest(texts: Texts) -> str:
    """What tells whether a row's texts are those that the map is for."""
    content = json.dumps(sorted(texts.items()), ensure_ascii=True)
    return hashlib.sha256(content.encode()).hexdigest()[:16]


def _read_map(path: str | Path) -> list[dict[str, Any]]:
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise DataError(f"{path} does not exist; check the path of the map") from error
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}; check the path of the map") from error
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path} is no JSON; name the map that narrlit pseudonymise --map wrote") from error
    if not isinstance(content, dict) or content.get("format") != _FORMAT or not isinstance(content.get("rows"), list):
        raise DataError(f"{path} is no map of pseudonyms; name the one that narrlit pseudonymise --map wrote")
    return list(content["rows"])


def _restored_row(raw: RawFile, row: RawRow, fields: TextFields, entry: dict[str, Any], path: str | Path) -> object:
    texts = fields.of(row.value)
    try:
        if entry["digest"] != _digest(texts):
            raise DataError(f"{raw.at(row.line)}: not the row that {path} maps; give the file as it was written")
        old = {
            place: restore(texts[place], [Replacement(start, end, original) for start, end, original in made])
            for place, made in entry["replacements"].items()
        }
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise DataError(f"{path}: its entry for {raw.at(row.line)} is broken; make the map anew") from error
    return with_texts(row.value, old)
