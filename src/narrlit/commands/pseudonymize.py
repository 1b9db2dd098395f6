"""narrlit pseudonymize: names in stories replaced by placeholders, and restored."""

from typing import TYPE_CHECKING, Annotated

import narrlit
from narrlit.commands.options import InputOptions
from narrlit.console import say
from narrlit.data.text_rows import TextRows
from narrlit.errors import OptionError
from narrlit.files import Output
from narrlit.preprocessing.pseudonyms import PseudonymOptions, Scope

if TYPE_CHECKING:
    from narrlit.data.pseudonymization import Pseudonymized, Restored


def pseudonymize(  # noqa: PLR0913 (options)
    file: str,
    *,
    out: Annotated[str, Output()],
    files: InputOptions,
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
        files: how the file is read.
        scope: texts that share a mapping of names: a story with its views, or all texts of a triple or example.
        pipeline: name or folder of the spaCy pipeline.
        coref: link names by coreference clusters (fastcoref).
        coref_model: hub id or folder of the F-coref model.
        names: JSON Lines of stories' texts and names, as narrlit storyworld writes *_views.jsonl, in place of spaCy.
        map: JSON Lines file to write with every replacement, by which --restore puts the names back; only its owner can
            read it.
        restore: map of this file; put the original names back, and do nothing else.
    """
    changed = PseudonymOptions("none", scope, pipeline, coref, coref_model) != PseudonymOptions()
    if restore is not None and (changed or names is not None or map is not None):
        raise OptionError("--restore takes no other options than --out")
    rows = TextRows.read(file, files.layout, progress=True)
    rows.check_output(out)
    result: Pseudonymized | Restored
    if restore is not None:
        result = narrlit.restore_names(rows, restore)
    else:
        result = narrlit.pseudonymize(
            rows, scope=scope, pipeline=pipeline, coref=coref, coref_model=coref_model, names=names, progress=True
        )
        if map is not None:
            result.write_map(map)
    result.write(out)
    say(f"{out}: {result}")
