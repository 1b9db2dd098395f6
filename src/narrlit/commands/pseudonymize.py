"""narrlit pseudonymize: stories with placeholders for names, and back."""

from pathlib import Path
from typing import Literal

from narrlit.console import say
from narrlit.data.rows import DELIMITERS, JSON_SUFFIXES, read_raw
from narrlit.data.writers import write_raw
from narrlit.errors import OptionError
from narrlit.files import check_writable
from narrlit.text.pseudonyms.options import Pseudonyms, Scope


def pseudonymize(
    file: str,
    *,
    out: str,
    scope: Scope = "story",
    backend: Literal["rules", "spacy", "spacy+coref"] = "rules",
    pipeline: str = Pseudonyms.pipeline,
    coref_model: str = Pseudonyms.coref_model,
    map: str | None = None,
    restore: str | None = None,
) -> None:
    """Put placeholders such as Character_A and Location_1 for names; all other fields, rows and their order stay.

    Args:
        file: stories (with their views, if there are any), triples or training examples; JSON Lines, CSV, TSV or text.
        out: file to write, of the same kind.
        scope: what shares a mapping: each story has its own, which its views take over, or all texts of a triple or
            example have one. The latter knows no views: join them first, with --views ... --pseudonymize of evaluate.
        backend: who finds the names; rules needs no model, the others pip install 'narrlit[text]'.
        pipeline: spaCy's, by name or path.
        coref_model: fastcoref's, by hub id or folder, for spacy+coref.
        map: file to write (.json) with what was replaced where, to restore the texts.
        restore: a map that was written so; put the names back. Texts are as before to the letter, quoting and ends of
            lines in the file perhaps not. Nothing else is done.
    """
    options = Pseudonyms(backend, scope, pipeline, coref_model)
    if restore is not None and options != Pseudonyms("rules"):
        raise OptionError("--restore reads its map alone; leave --scope, --backend, --pipeline and --coref-model out")
    _check_paths(file, out, map, restore)
    raw = read_raw(file)
    from narrlit.data import pseudonym_map

    if restore is not None:
        rows = pseudonym_map.restored(raw, restore)
        write_raw(out, rows)
        say(f"{out}: {len(rows)} rows with their names again")
        return
    done = pseudonym_map.pseudonymise_file(raw, options)
    if map is not None:
        pseudonym_map.write_map(map, done.map)
    write_raw(out, done.rows)
    kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(done.names.items())) or "none"
    without = f"; {done.without} without a text stay as they are" if done.without else ""
    say(f"{out}: {len(done.rows)} rows, names replaced in {done.places} places: {kinds}{without}")


def _check_paths(file: str, out: str, map: str | None, restore: str | None) -> None:
    """Refuse before any work what could not be written, or would overwrite what is read."""
    if map is not None and restore is not None:
        raise OptionError("--map and --restore: a map is written or read; give one of them")
    if _format(file) != _format(out):
        raise OptionError(f"--out {out}: name a file of the same kind as {file}")
    if map is not None and Path(map).suffix != ".json":
        raise OptionError(f"--map {map}: name a file that ends in .json")
    written = [path for path in (out, map) if path is not None]
    for path in written:
        if any(Path(path).resolve() == Path(read).resolve() for read in (file, restore) if read is not None):
            raise OptionError(f"{path} would be overwritten with what is made of it; name another file")
        check_writable(path)


def _format(path: str) -> str:
    suffix = Path(path).suffix.lower()
    return "json" if suffix in JSON_SUFFIXES else "table" if suffix in DELIMITERS else suffix
