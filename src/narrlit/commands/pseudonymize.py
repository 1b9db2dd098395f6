"""narrlit data pseudonymize: replace names in stories with placeholders, and restore them."""

from typing import TYPE_CHECKING, Annotated

import narrlit
from narrlit.console import say
from narrlit.data.rows import Layout
from narrlit.data.text_rows import TextRows
from narrlit.errors import OptionError
from narrlit.files import Output
from narrlit.preprocessing.pseudonyms import ClusterParts, PseudonymOptions, Scope

if TYPE_CHECKING:
    from narrlit.data.pseudonymization import Pseudonymized, Restored


def pseudonymize(  # noqa: PLR0913 (options)
    file: str,
    *,
    out: Annotated[str, Output()],
    layout: Layout = Layout(),
    scope: Scope = "story",
    pipeline: str = PseudonymOptions.pipeline,
    coref: bool = False,
    coref_model: str = PseudonymOptions.coref_model,
    cluster: ClusterParts = "names",
    names: str | None = None,
    map: Annotated[str | None, Output()] = None,
    restore: str | None = None,
) -> None:
    """Replace names with placeholders such as Character_A and Location_1; other fields and the order of rows are kept.

    Args:
        file: stories (with their views, if any), triples or training examples: a file, a folder or - for standard
            input.
        out: file to write: .jsonl, .csv, .tsv, .xlsx or .parquet with all columns, or .txt with the texts alone.
        layout: how the file is read.
        scope: texts that share one mapping from names to placeholders: a story with its views, or all texts of a triple
            or example.
        pipeline: name or folder of the spaCy pipeline.
        coref: link names of the same character by coreference resolution (fastcoref).
        coref_model: hub id or folder of the F-coref model.
        cluster: parts of a coreference cluster to replace: its names, or all its mentions, also pronouns and
            descriptions (needs --coref).
        names: JSON Lines of story texts and their names, such as *_views.jsonl from narrlit data storyworld; used
            instead of spaCy.
        map: JSON Lines file of all replacements to write, for --restore; only its owner can read it.
        restore: file written by --map; restore the original names instead of replacing names.
    """
    changed = PseudonymOptions("none", scope, pipeline, coref, coref_model, cluster) != PseudonymOptions()
    if restore is not None and (changed or names is not None or map is not None):
        raise OptionError("options_of_restore")
    rows = TextRows.read(file, layout, progress=True)
    rows.check_output(out)
    result: Pseudonymized | Restored
    if restore is not None:
        result = narrlit.restore_names(rows, restore)
    else:
        result = narrlit.pseudonymize(
            rows,
            scope=scope,
            pipeline=pipeline,
            coref=coref,
            coref_model=coref_model,
            cluster=cluster,
            names=names,
            progress=True,
        )
        if map is not None:
            result.write_map(map)
    result.write(out)
    say(f"{out}: {result}")
