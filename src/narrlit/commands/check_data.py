"""narrlit check-data: stories that files share, and shortcuts that solve their triples."""

from pathlib import Path
from typing import Annotated

from narrlit.console import say
from narrlit.errors import OptionError
from narrlit.files import Output
from narrlit.options import InputOptions, ModelOptions, StoryOptions


def check_data(  # noqa: PLR0913 - its parameters are the command's options
    train: str,
    validation: str,
    test: str | None = None,
    *,
    labels: str | None = None,
    threshold: float = 0.5,
    out: Annotated[str | None, Output.folder("check_data.json", "check_data.md")] = None,
    use: ModelOptions,
    read: StoryOptions,
    inputs: InputOptions,
) -> None:
    """Check whether files share stories, and whether word overlap, length or position alone solve their triples.

    Args:
        train: training examples, triples or stories, as JSON Lines or CSV.
        validation: triples, training examples or stories.
        test: triples, with or without labels, or stories.
        labels: file of text_a_is_closer for the validation triples, where it is a file of its own.
        threshold: Jaccard index of three-word shingles from which stories are near-duplicates.
        out: folder for check_data.json, with the lines of shared stories and near-duplicates, and check_data.md.
        use: model whose vectors of validation and test stories must not depend on other stories, as Track B demands.
        read: what it reads of a story.
        inputs: how files of stories are read.
    """
    if use.model is None and (use, read) != (ModelOptions(), StoryOptions()):
        raise OptionError("--views, --pseudonymize, --postprocess and their like need --model")
    if not 0 < threshold <= 1:
        raise OptionError(f"--threshold {threshold}: a number above 0, at most 1, is needed")
    from narrlit.experiments.report import keep_report
    from narrlit.metrics.data_check import check_sets, check_tables, read_set
    from narrlit.tables import markdown_table

    layout = inputs.layout
    sets = [read_set("train", train, layout=layout), read_set("validation", validation, labels, layout)]
    sets += [read_set("test", test, layout=layout)] if test is not None else []
    for each in sets:
        if each.report is not None:
            say(each.report.summary())
    check = check_sets(sets, threshold)
    tables = [markdown_table(title, rows) for title, rows in check_tables(check).items()]
    note = f"Near-duplicates: Jaccard index of three-word shingles from {threshold}. Intervals are 95 % (Wilson)."
    markdown = "\n".join([*(f"- {line}" for line in check["verdict"]), "", *tables, note]) + "\n"
    print(markdown, end="")
    if use.model is not None:
        from narrlit.data.readers import read_any
        from narrlit.submission import check_independence

        sources = {path: read_any(path, layout=layout) for path in (validation, test) if path is not None}
        original = {path: list(source) for path, source in sources.items()}
        embedded = [story for stories in original.values() for story in stories]
        encoder = read.load(use.model, use).fitted_for(embedded)
        for path, stories in original.items():
            finding = check_independence(encoder, stories)
            print(f"{path}: {finding}")
    if out is not None:
        keep_report(Path(out), "check_data", check, markdown)
        say(f"{out}: check_data.json, check_data.md")
