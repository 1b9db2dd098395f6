"""narrlit pseudonymize: names in stories replaced by placeholders, and restored."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from narrlit.console import counted, say
from narrlit.data.rows import DELIMITERS, JSON_SUFFIXES, RawFile, read_raw
from narrlit.data.text_fields import text_fields, with_texts
from narrlit.data.writers import write_raw
from narrlit.errors import DataError, OptionError, reading
from narrlit.files import atomic_path, check_apart, check_writable
from narrlit.preprocessing.pseudonyms import (
    PseudonymizedText,
    PseudonymOptions,
    Replacement,
    Scope,
    pseudonymize_texts,
    restore,
)

Texts = dict[str, str]


def pseudonymize(  # noqa: PLR0913 - its parameters are the command's options
    file: str,
    *,
    out: str,
    scope: Scope = "story",
    pipeline: str = PseudonymOptions.pipeline,
    coref: bool = False,
    coref_model: str = PseudonymOptions.coref_model,
    names: str | None = None,
    map: str | None = None,
    restore: str | None = None,
) -> None:
    """Replace names by placeholders such as Character_A and Location_1; other fields, rows and their order stay.

    Args:
        file: stories (with their views, if any), triples or training examples; JSON Lines, CSV, TSV or text.
        out: file to write, of the same kind.
        scope: texts that share a mapping of names: a story with its views, or all texts of a triple or example.
        pipeline: name or folder of the spaCy pipeline.
        coref: link names by coreference clusters (fastcoref).
        coref_model: hub id or folder of the F-coref model.
        names: JSON Lines of stories' texts and names, as narrlit storyworld writes *_views.jsonl; takes the place of
            spaCy.
        map: JSON Lines file to write, with every replacement, readable by its owner only; restores the texts.
        restore: map of this file; put the original names back and do nothing else.
    """
    options = PseudonymOptions("spacy" if names is None else "given", scope, pipeline, coref, coref_model)
    if restore is not None and (options != PseudonymOptions("spacy") or map is not None):
        raise OptionError("--restore takes no other options than --out")
    if _kind(file) != _kind(out):
        raise OptionError(f"--out {out}: give a file of the same kind as {file}")
    check_apart({"--out": out, "--map": map}, [file, names, restore])
    for path in (out, *([map] if map else [])):
        check_writable(path)
    raw = read_raw(file)
    if restore is not None:
        write_raw(out, _restored(raw, restore))
        say(f"{out}: {counted(len(raw.rows), 'row')} with their original names")
        return
    fields = text_fields(raw)
    if fields.kind == "stories" and scope == "triple":
        raise OptionError(f"--scope triple: {file} has stories, and a story must not depend on others; use story")
    texts = [fields.of(row.value) for row in raw.rows]
    groups = [group for row in texts for group in _groups(row, whole=fields.kind == "stories" or scope == "triple")]
    different = list(dict.fromkeys(tuple(group.values()) for group in groups))
    given = None if names is None else _given(different, names)
    done = dict(
        zip(different, pseudonymize_texts(different, options, given, lead=fields.kind == "stories"), strict=True)
    )
    rows, lines = [], []
    for number, (row, old) in enumerate(zip(raw.rows, texts, strict=True)):
        new: dict[str, PseudonymizedText] = {}
        for group in _groups(old, whole=fields.kind == "stories" or scope == "triple"):
            new |= dict(zip(group, done[tuple(group.values())], strict=True))
        rows.append(with_texts(row.value, {place: one.text for place, one in new.items()}))
        identity = {"id": row.value["id"]} if isinstance(row.value, Mapping) and "id" in row.value else {}
        lines += [
            {"row": number, **identity, "field": place, "replacements": [asdict(each) for each in one.replacements]}
            for place, one in new.items()
        ]
    if map is not None:
        with atomic_path(map, private=True) as temporary:
            temporary.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines), "utf-8")
    write_raw(out, rows)
    places = sum(len(line["replacements"]) for line in lines)
    say(f"{out}: {counted(len(rows), 'row')}, {counted(places, 'name')} replaced")


def _groups(texts: Texts, whole: bool) -> list[Texts]:
    """Texts of a row that share a mapping."""
    if whole:
        return [texts] if texts else []
    return [{place: text} for place, text in texts.items()]


def _given(groups: Sequence[tuple[str, ...]], path: str) -> list[dict[str, str]]:
    """Names of each group, from a file of stories with their names."""
    with reading("names", path, "give JSON Lines with text and names, as narrlit storyworld writes *_views.jsonl"):
        of_text: dict[str, dict[str, str]] = {row["text"]: dict(row["names"]) for row in _values(path)}
    return [{name: label for text in group for name, label in of_text.get(text, {}).items()} for group in groups]


def _values(path: str) -> list[Any]:
    return [row.value for row in read_raw(path).rows]


def _restored(raw: RawFile, path: str) -> list[Any]:
    """Rows with their original texts."""
    texts = [text_fields(raw).of(row.value) for row in raw.rows]
    old: list[Texts] = [{} for _ in raw.rows]
    with reading("map", path, f"give the map that was written together with {raw.path}"):
        for line in _values(path):
            row, place = line["row"], line["field"]
            replacements = [Replacement(**one) for one in line["replacements"]]
            try:
                old[row][place] = restore(texts[row][place], replacements)
            except DataError as error:
                raise DataError(f"{raw.at(raw.rows[row].line)}: {error}; give the map of this file") from error
    if [list(each) for each in old] != [list(each) for each in texts]:
        raise DataError(f"map {path} has other rows than {raw.path}; give the map of this file")
    return [with_texts(row.value, each) for row, each in zip(raw.rows, old, strict=True)]


def _kind(path: str) -> str:
    suffix = Path(path).suffix.lower()
    return "json" if suffix in JSON_SUFFIXES else "table" if suffix in DELIMITERS else suffix
