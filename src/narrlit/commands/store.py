"""narrlit store: what the stores of vectors hold, whether it is whole, and what of it may go."""

import json as json_format
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NoReturn

from tqdm import tqdm

from narrlit.commands.devices import say
from narrlit.errors import OptionError
from narrlit.stores.selection import Selection

if TYPE_CHECKING:
    from narrlit.stores.upkeep import Summary

COLUMNS = ("store", "model", "settings", "vectors", "numbers", "dtype", "shards", "size", "unfinished", "changed")


def store(
    action: Literal["ls", "verify", "prune"],
    folder: str = "runs/vectors",
    *,
    json: bool = False,
    select: Selection,
    yes: bool = False,
) -> int:
    """Look after the stores of frozen vectors.

    Args:
        action: ls: what each store holds; verify: read all of it; prune: tell what may go, and remove it with --yes.
        folder: of the stores, or one of them; teachers' vectors in run directories are stores, too.
        json: of ls: print a list of JSON objects.
        select: of prune.
        yes: of prune: do what would else only be told.
    """
    root = Path(folder)
    if not root.is_dir():
        raise OptionError(f"{folder} is no folder: name one that holds stores of vectors")
    given = {"--json": (json, "ls"), "--yes": (yes, "prune")}
    given |= {f"--{name.replace('_', '-')}": (value, "prune") for name, value in asdict(select).items()}
    for name, (value, whose) in given.items():
        if value and action != whose:
            raise OptionError(f"{name} is an option of {whose} and has no use with {action}: leave it out")
    from narrlit.stores.upkeep import find_stores

    found = find_stores(root)
    if not found:
        say(f"{folder} holds no store of vectors")
    if action == "ls":
        return _ls(root, found, json)
    return _verify(found) if action == "verify" else _prune(found, select, yes)


def _ls(root: Path, folders: list[Path], json: bool) -> int:
    from narrlit.stores.upkeep import summarize

    found = [summarize(folder) for folder in folders]
    if json:
        print(json_format.dumps([_plain(summary) for summary in found], indent=2))
        return 0
    rows = [COLUMNS, *(_row(root, summary) for summary in found)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows if found else []:
        print("  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip())
    for summary in found:
        for fault in summary.faults:
            print(fault)
    return 0


def _plain(summary: "Summary") -> dict[str, Any]:
    told = {**asdict(summary), "model": summary.model, "settings": summary.settings}
    told["changed"] = datetime.fromtimestamp(summary.changed).astimezone().isoformat(timespec="seconds")
    return {**told, "folder": str(summary.folder), "leftovers": [str(path) for path in summary.leftovers]}


def _row(root: Path, summary: "Summary") -> tuple[str, ...]:
    settings = " ".join(f"{name}={value}" for name, value in summary.settings.items())
    return (
        str(summary.folder if summary.folder == root else summary.folder.relative_to(root)),
        "no description" if summary.model is None else summary.model,
        settings or "-",
        f"{summary.vectors:,}",
        "-" if summary.dimension is None else str(summary.dimension),
        "+".join(summary.stored) or "-",
        str(summary.shards),
        size(summary.size),
        str(len(summary.leftovers)),
        datetime.fromtimestamp(summary.changed).strftime("%Y-%m-%d %H:%M"),
    )


def size(count: int) -> str:
    """Bytes as a person reads them.

    >>> size(999), size(1234), size(56_789_000_000)
    ('999 B', '1.2 kB', '56.8 GB')
    """
    units = ("B", "kB", "MB", "GB", "TB")
    power = min(len(units) - 1, max(0, (len(str(count)) - 1) // 3))
    return f"{count / 1000**power:.{min(power, 1)}f} {units[power]}"


def counted(number: int, thing: str) -> str:
    """A number of things.

    >>> counted(1, "file"), counted(2345, "file")
    ('1 file', '2,345 files')
    """
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def _verify(folders: list[Path]) -> int:
    from narrlit.stores.verifying import verify_store

    faulty = False
    with _reading(folders) as bar:
        for folder in folders:
            found = verify_store(folder, bar.update)
            told = f"{folder}: {counted(len(found.keys), 'sound shard')} with {counted(found.vectors, 'vector')}"
            told += f", {found.unchecked} of them without a checksum" if found.unchecked else ""
            told += f"; {counted(len(found.faults), 'fault')}" if found.faults else ""
            faulty = faulty or bool(found.faults)
            for line in [told, *map(str, found.faults)]:
                bar.write(line)
    return int(faulty)


def _prune(folders: list[Path], select: Selection, yes: bool) -> int:
    from narrlit.stores.pruning import plan, take

    with _reading(folders) as bar:
        steps, faults = plan(folders, select, bar.update)
    for fault in faults:
        say(f"left alone: {fault}")
    for step in tqdm(steps, desc="pruning", unit="step", delay=0.5, leave=False):
        tqdm.write(f"{step.folder}: {counted(len(step.files), 'file')}, {step.why}, {size(step.freed)}")
        if yes:
            take(step)
    freed = size(sum(step.freed for step in steps))
    if not steps:
        say("nothing to remove")
    else:
        say(f"{freed} freed" if yes else f"nothing is removed yet: --yes frees {freed}")
    return 0


def _reading(folders: list[Path]) -> "tqdm[NoReturn]":
    from narrlit.stores.shards import shard_paths
    from narrlit.stores.upkeep import size_of

    whole = sum(size_of(shard_paths(folder)) for folder in folders)
    return tqdm(total=whole, desc="reading", unit="B", unit_scale=True, delay=0.5, leave=False)
