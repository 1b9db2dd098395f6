"""narrlit pairs: the most similar stories of a collection, and groups of retellings."""

from pathlib import Path
from typing import Annotated

from narrlit.console import counted, say
from narrlit.errors import OptionError, printable
from narrlit.files import Output, check_writable
from narrlit.options import InputOptions, ModelOptions, StoryOptions

SUFFIXES = (".csv", ".tsv", ".xlsx", ".jsonl", ".parquet", ".graphml")
SHOWN = 20
"""Pairs, and groups, that are printed."""
WIDTH = 60
"""Characters of a title that are printed."""


def pairs(
    collection: str,
    *,
    k: int = 10,
    threshold: float | None = None,
    out: Annotated[str | None, Output("{path}", "{stem}-groups{suffix}")] = None,
    use: ModelOptions,
    read: StoryOptions,
    inputs: InputOptions,
) -> None:
    """Print the most similar pairs of a collection, and groups of retellings: mutual neighbors above a threshold.

    Args:
        collection: an index, or stories as `narrlit embed` reads them.
        k: nearest neighbors of each story that it is paired with.
        threshold: cosine above which mutual neighbors are retellings; by default chosen from the similarities of all
            pairs, and explained.
        out: file of the pairs (.csv, .tsv, .xlsx, .jsonl, .parquet), with NAME-groups beside it; or a graph (.graphml).
        use: the model, where the collection is no index.
        read: what it reads of a story.
        inputs: files of stories.
    """
    if k < 1:
        raise OptionError(f"--k {k}: at least 1 is needed")
    target = None if out is None else Path(out)
    if target is not None:
        check_writable(target, *SUFFIXES)
    from narrlit.data.writers import write_table
    from narrlit.experiments.report import table_text
    from narrlit.explore.collection import load_collection
    from narrlit.explore.pairs import retelling_groups, similar_pairs, write_graph

    stories = load_collection(collection, use, read, inputs)
    table = similar_pairs(stories, k)
    groups, _, reason = retelling_groups(stories, threshold, table)
    rows = [
        {
            "similarity": f"{row.similarity:.3f}",
            "story": printable(row.title_a or row.id_a, WIDTH),
            "with": printable(row.title_b or row.id_b, WIDTH),
        }
        for row in table.head(SHOWN).itertuples()
    ]
    print(table_text("Most similar pairs", rows))
    print(f"## Groups of retellings\n\n{reason}\n")
    members = groups.assign(name=groups["title"].where(groups["title"] != "", groups["id"])).groupby("group")["name"]
    for number, names in members.agg(list).head(SHOWN).items():
        print(f"{number}. {'; '.join(printable(name, 60) for name in names)}")
    more = f", of which {SHOWN} are shown" if len(members) > SHOWN else ""
    summary = f"{counted(len(members), 'group')} with {len(groups):,} of {len(stories.frame):,} stories{more}"
    print(f"\n{summary}." if len(members) else "No group: no pair of mutual neighbors is above the threshold.")
    if target is None:
        return
    if target.suffix == ".graphml":
        write_graph(target, stories, table, groups)
        say(f"{target}: {len(stories.frame):,} nodes, {len(table):,} edges")
        return
    write_table(target, table.to_dict("records"))
    beside = target.with_name(f"{target.stem}-groups{target.suffix}")
    if len(groups):
        write_table(beside, groups.to_dict("records"))
        say(f"{beside}: {counted(len(members), 'group')}")
    else:
        beside.unlink(missing_ok=True)  # of pairs that were replaced
    say(f"{target}: {counted(len(table), 'pair')}")
