"""narrlit fuse: settings of a fusion of stories and their views compared on labelled triples."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from narrlit.commands.devices import pick_device, say, say_truncated
from narrlit.commands.fuse_report import block, notes, report, table
from narrlit.commands.fusion_settings import read_settings
from narrlit.commands.reports import Entry, keep_report
from narrlit.data.readers import file_digest
from narrlit.errors import ModelError, OptionError
from narrlit.files import check_writable
from narrlit.options import LabelOptions, LoadOptions, TextOptions, seen_in_training

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from narrlit.commands.fuse_contest import Contest
    from narrlit.models.view_encoder import AnyEncoder

REPORT = "fuse"


@dataclass(frozen=True)
class Compared:
    """Which settings are compared, and how the best of a grid is judged.

    Attributes:
        settings: YAML file with the single key settings, NAME: [full, theme, plot, outcome] in it; ttda704's if not
            given.
        grid: step of the weights among which each fold's are chosen on the other folds; 1 is a whole number of it.
        folds: how many; triples that share a story are in the same one.
        fold_seed: decides the folds.
    """

    settings: str | None = None
    grid: float = 0.1
    folds: int = 5
    fold_seed: int = 0


def fuse(
    triples: str,
    *,
    models: str,
    use: LoadOptions,
    read: TextOptions,
    given: LabelOptions,
    compare: Compared,
    out: str | None = None,
) -> None:
    """Compare weights of a story's text and views on labelled triples; each model reads every part once.

    Args:
        triples: JSON Lines or CSV of anchor_text, text_a, text_b and text_a_is_closer.
        models: folders, run directories, checkpoints, hub ids or minilm, with commas between.
        use: how they are loaded.
        read: what they read of the stories.
        given: the triples' labels.
        compare: the settings.
        out: folder for fuse.json and fuse.md, which replace earlier ones.
    """
    names = _names(models)
    settings = read_settings(compare.settings)
    pick_device(use.device)  # a mistake in it costs no waiting
    if out is not None:
        check_writable(Path(out) / f"{REPORT}.json")
    contest, joined, described = _prepare(triples, read, given, compare)
    seen = {name: seen_in_training(name, described["triples"]["sha256"]) for name in names}
    entries: list[Entry] = []
    for name in names:
        say(f"{name} reads texts and views")
        encoder = use.load_named(name)
        vectors, cut = _vectors(name, encoder, joined)
        told = {"max_length": encoder.max_length, "truncated": cut, "seen_in_training": seen[name]}
        entries.append({**contest.entry(name, vectors, settings), **told})
        found = {**described, **report(entries, contest)}
        if out is not None:  # after each model, so that none is lost to a mistake in a later one
            keep_report(Path(out), REPORT, found, table(found))
        print(block(entries[-1]), flush=True)
    print(notes(found), end="")


def _names(models: str) -> list[str]:
    names = [name.strip() for name in models.split(",")]
    if not all(names) or len(set(names)) < len(names):
        raise OptionError(f"--models {models}: give different models, with a comma between two of them")
    return names


def _prepare(
    triples: str, read: TextOptions, given: LabelOptions, compare: Compared
) -> tuple["Contest", list[str], Entry]:
    """What each model is judged by, the stories of its table joined with their views, and both for the report."""
    from narrlit.commands.fuse_contest import Contest
    from narrlit.data.table import index_triples

    if not read.reads_views:
        raise OptionError("views are needed: give --views FILE, or --missing-views positional")
    reading = given.read(triples)
    say(reading.summary())
    viewed, views = read.triples_and_views(reading.records)
    index = index_triples(viewed)
    # Folds keep together the triples of a story whatever its placeholders are: they are dealt by the stories as read.
    contest = Contest.of(reading.records, index, compare.grid, compare.folds, compare.fold_seed)
    described = {
        "triples": {"path": triples, "sha256": file_digest(triples), "n": len(index), "dropped": reading.dropped},
        "views": views,
        "pseudonyms": asdict(read.pseudonyms) if read.pseudonymize != "none" else None,
    }
    return contest, index.table.texts, described


def _vectors(name: str, encoder: "AnyEncoder", joined: list[str]) -> tuple["NDArray[np.float32]", int]:
    """Vectors (U, 4, D) of the stories' parts, and how many parts were cut.

    Raises:
        ModelError: if the model has prompts for roles, or its vectors are not numbers.
    """
    import numpy as np

    from narrlit.models.embedding import part_vectors

    encoder.require_one_prompt("fuse")
    vectors, cut = part_vectors(encoder, joined)
    if not np.isfinite(vectors).all():
        raise ModelError(f"{name}: some of its vectors are not numbers (NaN), the model is broken; leave it out")
    say_truncated(cut, encoder.max_length, "text or view", "texts and views")
    return vectors, cut
