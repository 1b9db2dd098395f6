"""narrlit ablate: a system and its ablations, one fit each, in one table."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from narrlit.commands.ablate_report import FULL, report, system_entry, table
from narrlit.commands.fits import LOGGER, fit_apart, keep_plan, read_record, refuse_partial
from narrlit.commands.overlays import Overlay, find_overlays, overruled
from narrlit.commands.reports import keep_report, read_answers, selectors
from narrlit.commands.training import parsed_fit
from narrlit.console import say
from narrlit.errors import OptionError


@dataclass(frozen=True)
class RowData:
    """The data of a row.

    Attributes:
        provenance: where the training rows and the validation triples come from.
        triples: digest of the validation triples.
    """

    provenance: dict[str, Any]
    triples: str


@dataclass(frozen=True)
class Row:
    """One system: its name, its overlay if it is an ablation, its whole configuration and its data."""

    name: str
    overlay: Overlay | None
    config: dict[str, Any]
    data: RowData

    @property
    def path(self) -> str | None:
        """The overlay's file."""
        return self.overlay.path if self.overlay else None


def ablate(*fit: str, out: str, ablations: str | None = None) -> None:
    """Train and judge a system and its ablations: all other options, --config first, are those of `narrlit fit`.

    The first row, full, is the config as given; each further one has one overlay more, which beats all configs and
    options before it. The same command again goes on where it was stopped: finished rows stay, an interrupted one
    begins anew.

    Args:
        *fit: options of `narrlit fit`.
        out: folder for the rows' configs and runs (full.yaml, full, ...), ablations.json and ablations.md.
        ablations: overlays, files or patterns with a comma between, looked for here and among the package's own; by
            default configs/ablations/SYSTEM_*.yaml, where SYSTEM is the first config's name.
    """
    folder = Path(out)
    rows = _rows(fit, find_overlays(fit, ablations), named=ablations is not None)
    for row in rows:
        keep_plan(folder / f"{row.name}.yaml", row.config, folder / row.name if row.overlay else folder)
    finished = {row.name for row in rows if _is_finished(folder / row.name, row)}
    for place, row in enumerate(rows, 1):
        if row.name in finished:
            say(f"{row.name}: finished before")
            continue
        say(f"\n{row.name}, row {place} of {len(rows)}: {row.path or 'the config as given'}")
        fit_apart(folder / row.name, folder / f"{row.name}.yaml")
    entries = [_entry(folder / row.name, row) for row in rows]
    deciders = {row.name: selectors(row.config) for row in rows}
    found = report(entries, deciders, rows[0].config["seed_everything"])
    text = table(found)
    keep_report(folder, "ablations", found, text)
    say("")
    print(text, end="")


def _rows(fit: tuple[str, ...], overlays: list[Overlay], named: bool) -> list[Row]:
    """Every row, its configuration parsed and its data read, so that a mistake costs no fit.

    Overlays that change nothing are left out where nobody named them.

    Raises:
        OptionError: if rows can't be compared.
    """
    rows: list[Row] = []
    data: dict[str, RowData] = {}
    for overlay in (None, *overlays):
        for sentence in overruled(fit, overlay) if overlay else ():
            say(sentence)
        # The overlay stands last: whatever comes later on a command line wins, and a class that it replaces takes its
        # options with it.
        cli = parsed_fit([*fit, *(("--config", overlay.path) if overlay else ())])
        config = cli.as_dict()
        refuse_partial(config, "an ablation")
        config["trainer"]["logger"] = LOGGER
        key = json.dumps(config["data"])
        if key not in data:
            data[key] = _read(cli.datamodule)
        row = Row(overlay.name if overlay else FULL, overlay, config, data[key])
        twin = next((other.name for other in rows if other.config == config), None)
        if overlay and twin and not named:
            say(f"{overlay.name} is left out: {overlay.path} changes nothing of the row {twin}")
            continue
        _refuse_incomparable(row, rows)
        rows.append(row)
    return rows


def _read(data: Any) -> RowData:
    from narrlit.callbacks.answer_record import triples_digest

    data.setup("fit")
    triples = data.triples_as_read("validation")
    if not triples:
        raise OptionError("an ablation judges by validation triples: give --data.validation FILE")
    return RowData(json.loads(json.dumps(data.provenance)), triples_digest(triples))


def _refuse_incomparable(row: Row, before: list[Row]) -> None:
    if row.overlay is None:
        return
    if row.data.triples != before[0].data.triples:
        raise OptionError(f"--ablations {row.path} changes the validation triples: rows must judge the same ones")
    for other in before:
        if row.config == other.config:
            raise OptionError(f"--ablations {row.path} changes nothing of the row {other.name}: leave it out")


def _is_finished(run: Path, row: Row) -> bool:
    """Whether a row need not be fitted again.

    Raises:
        OptionError: if it was fitted on other data.
    """
    record = read_record(run)
    if record.get("status") != "finished":
        return False
    _check_data(run, record, row.data)
    return True


def _entry(run: Path, row: Row) -> dict[str, Any]:
    record = read_record(run)
    _check_data(run, record, row.data)  # files may change while other rows are fitted
    return system_entry(row.name, row.path, record, read_answers(run))


def _check_data(run: Path, record: dict[str, Any], data: RowData) -> None:
    """See that a run was fitted and judged on the data as they are now.

    Raises:
        OptionError: naming what has changed.
    """
    changed = _changed_file(record["data"], data.provenance)
    if changed is None and record["validations"] and read_answers(run)["triples"] != data.triples:
        changed = "the validation triples or their labels"
    if changed is not None:
        raise OptionError(f"{run} is of other data, {changed} changed since: name another --out or remove {run}")


def _changed_file(kept: dict[str, Any], now: dict[str, Any]) -> str | None:
    """The first data file with another content, or the stage whose data are others; None where all are the same."""
    for stage, here in now.items():
        there = kept.get(stage, {})
        for before, after in zip(there.get("files", []), here.get("files", []), strict=False):
            if before["sha256"] != after["sha256"]:
                return str(after["path"])
        # The record also counts stories and tokens, which are not known before the model is there.
        if any(there.get(name) != value for name, value in here.items()):
            return f"the {stage} data"
    return None
