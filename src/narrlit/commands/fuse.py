"""narrlit fuse: weights of stories' texts and views compared on labeled triples."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from narrlit.console import say
from narrlit.encoding.model_loading import pick_device
from narrlit.errors import OptionError
from narrlit.files import Output
from narrlit.options import LabelOptions, LoadOptions, TextOptions, seen_in_training

FILES = ("fuse.json", "fuse.md", "fuse.csv", "fuse.tex", "fuse.svg")


def fuse(  # noqa: PLR0913 (options)
    triples: str,
    *,
    models: str,
    use: LoadOptions,
    read: TextOptions,
    given: LabelOptions,
    settings: str | None = None,
    grid: float = 0.1,
    folds: int = 5,
    fold_seed: int = 0,
    out: Annotated[str | None, Output.folder(*FILES)] = None,
) -> None:
    """Compare weights of a story's text and views on labeled triples; each model embeds every text and view once.

    Args:
        triples: JSON Lines or CSV of anchor_text, text_a, text_b and text_a_is_closer.
        models: folders, run directories, checkpoints, hub ids or minilm, separated by commas.
        use: how models are loaded.
        read: how stories are read.
        given: labels of the triples.
        settings: YAML file of lines NAME: [full, theme, action, outcome]; default: the settings of ttda704.
        grid: step of the weights in the grid search.
        folds: number of folds of the grid search; triples that share a story are in the same fold.
        fold_seed: seed of the folds.
        out: folder for the report, fuse.json, .md, .csv, .tex and .svg.
    """
    names = [name.strip() for name in models.split(",")]
    if not all(names) or len(set(names)) < len(names):
        raise OptionError(f"--models {models}: give different models, separated by commas")
    if not read.reads_views:
        raise OptionError("views are needed: give --views FILE, or --missing-views positional")
    from narrlit.data.rows import file_digest
    from narrlit.experiments import fusion
    from narrlit.tables import markdown_table

    fusions = fusion.read_settings(settings)
    pick_device(use.device)  # fails before the long work
    labeled = given.read(triples)
    prepared = read.texts.prepare_triples(labeled)
    contest = fusion.Contest.of(labeled, prepared, grid, folds, fold_seed)
    digest = file_digest(triples)
    about = {
        "triples": {"path": triples, "sha256": digest, "n": len(labeled)},
        "views": read.texts.provenance,
        "pseudonyms": asdict(read.pseudonyms) if read.pseudonymize else None,
    }
    entries = []
    for name in names:
        say(f"{name} embeds texts and views")
        entry = contest.evaluate(read.load(name, use), fusions)
        entries.append({**entry, "seen_in_training": seen_in_training(name, digest)})
        report = fusion.fuse_report(entries, contest, about)
        if out is not None:  # after each model, so that a failing one loses no other
            report.write(Path(out), "fuse")
        for title, rows in fusion.model_tables(entries[-1]).items():
            print(markdown_table(title, rows), flush=True)
    print("\n".join(report.notes))
