"""narrlit pseudonymize: names in stories replaced by placeholders, and restored."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

from narrlit.console import counted, say
from narrlit.data.readers import row_texts, with_texts
from narrlit.data.rows import JSON_SUFFIXES, RowFile, read_rows
from narrlit.data.writers import OUTPUT_SUFFIXES, check_rows, write_table
from narrlit.errors import DataError, OptionError, reading
from narrlit.files import Output, atomic_path
from narrlit.options import InputOptions
from narrlit.preprocessing.pseudonyms import PseudonymOptions, Replacement, Scope, pseudonymize_texts, restore

Texts = dict[str, str]


def pseudonymize(  # noqa: PLR0913 - its parameters are the command's options
    file: str,
    *,
    out: Annotated[str, Output()],
    inputs: InputOptions,
    scope: Scope = "story",
    pipeline: str = PseudonymOptions.pipeline,
    coref: bool = False,
    coref_model: str = PseudonymOptions.coref_model,
    names: str | None = None,
    map: Annotated[str | None, Output()] = None,
    restore: str | None = None,
) -> None:
    """Replace names by placeholders such as Character_A and Location_1; other fields, rows and their order stay.

    Args:
        file: stories (with their views, if any), triples or training examples; a file, a folder or - as embed reads.
        out: file to write, with all columns: .jsonl, .csv, .tsv, .xlsx, .parquet, or .txt for the texts alone.
        inputs: how the file is read.
        scope: texts that share a mapping of names: a story with its views, or all texts of a triple or example.
        pipeline: name or folder of the spaCy pipeline.
        coref: link names by coreference clusters (fastcoref).
        coref_model: hub id or folder of the F-coref model.
        names: JSON Lines of stories' texts and names, as narrlit storyworld writes *_views.jsonl, instead of spaCy.
        map: JSON Lines file to write, with every replacement, readable by its owner only; restores the texts.
        restore: map of this file; put the original names back and do nothing else.
    """
    options = PseudonymOptions("spacy" if names is None else "given", scope, pipeline, coref, coref_model)
    if restore is not None and (options != PseudonymOptions("spacy") or map is not None):
        raise OptionError("--restore takes no other options than --out")
    if Path(out).suffix.lower() not in (*OUTPUT_SUFFIXES, ".txt"):
        raise OptionError(f"--out {out}: name a file that ends in {', '.join(OUTPUT_SUFFIXES)} or .txt")
    rows = read_rows(file, inputs.layout)
    for note in rows.notes:
        say(f"{rows.path.name}: {note}")
    kind, texts = row_texts(rows, inputs.layout)
    if Path(out).suffix.lower() not in JSON_SUFFIXES and any("/" in place for each in texts for place in each):
        raise OptionError(f"--out {out}: {file} has lists of texts, which need JSON Lines: name a .jsonl file")
    check_rows(Path(out), [row.value for row in rows.rows])
    if restore is not None:
        write_table(out, _restored(rows, texts, restore))
        say(f"{out}: {counted(len(texts), 'row')} with their original names")
        return
    if kind == "stories" and scope == "triple":
        raise OptionError(f"--scope triple: {file} has stories, and a story must not depend on others; use story")
    together = kind == "stories" or scope == "triple"
    groups = [
        (row, places)
        for row, each in enumerate(texts)
        for places in ([tuple(each)] if together else [(place,) for place in each])
        if places
    ]
    keys = [tuple(texts[row][place] for place in places) for row, places in groups]
    different = list(dict.fromkeys(keys))
    given = None if names is None else _given(different, names)
    results = pseudonymize_texts(different, options, given, lead=kind == "stories")
    done = dict(zip(different, results, strict=True))
    changed, lines = [dict[str, str]() for _ in texts], []
    for (row, places), key in zip(groups, keys, strict=True):
        value = rows.rows[row].value
        identity = {"id": value["id"]} if isinstance(value, Mapping) and "id" in value else {}
        for place, new in zip(places, done[key], strict=True):
            changed[row][place] = new.text
            replacements = [asdict(one) for one in new.replacements]
            lines.append({"row": row, **identity, "field": place, "replacements": replacements})
    if map is not None:
        with atomic_path(map, private=True) as temporary:
            text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
            temporary.write_text(text, encoding="utf-8", errors="backslashreplace")
    write_table(out, [with_texts(row.value, new) for row, new in zip(rows.rows, changed, strict=True)])
    replaced = sum(len(line["replacements"]) for line in lines)
    say(f"{out}: {counted(len(texts), 'row')}, {counted(replaced, 'name')} replaced")


def _given(groups: Sequence[tuple[str, ...]], path: str) -> list[dict[str, str]]:
    """Names of each group, from a file of stories with their names."""
    with reading("names", path, "give JSON Lines with text and names, as narrlit storyworld writes *_views.jsonl"):
        of_text: dict[str, Texts] = {row.value["text"]: dict(row.value["names"]) for row in read_rows(path).rows}
    return [{name: label for text in group for name, label in of_text.get(text, {}).items()} for group in groups]


def _restored(rows: RowFile, texts: Sequence[Texts], path: str) -> list[Any]:
    """Rows with their original texts."""
    originals: list[Texts] = [{} for _ in texts]
    with reading("map", path, f"give the map that was written together with {rows.path}"):
        for line in (row.value for row in read_rows(path).rows):
            row, place = line["row"], line["field"]
            replacements = [Replacement(**one) for one in line["replacements"]]
            try:
                originals[row][place] = restore(texts[row][place], replacements)
            except DataError as error:
                raise DataError(f"{rows.path}:{rows.rows[row].line}: {error}; give the map of this file") from error
    if [list(each) for each in originals] != [list(each) for each in texts]:
        raise DataError(f"map {path} has other rows than {rows.path}; give the map of this file")
    return [with_texts(row.value, each) for row, each in zip(rows.rows, originals, strict=True)]
