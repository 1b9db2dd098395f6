"""Tables and figures of the five papers: data files that say how each row is computed, encoders and files they need."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from narrlit.configuration import packaged_configs, packaged_names, read_yaml
from narrlit.errors import DataError, ModelError, OptionError, did_you_mean, reading

TABLES = Path(__file__).parents[1] / "tables"
OFFICIAL = "git clone https://github.com/narrative-similarity-task/narrative-similarity-dataset, and give `data=FOLDER`"
FILES = {
    "dev": ("dev/dev_track_a.jsonl", OFFICIAL),
    "sample": ("sample/sample_track_a.jsonl", OFFICIAL),
    "synthetic": ("synthetic/*classification*.jsonl", OFFICIAL),
    "test_a": ("test/test_track_a.jsonl", OFFICIAL),
    "test_b": ("test/test_track_b.jsonl", OFFICIAL),
    "labels_a": ("test/labels/*track_a*", ""),
    "labels_b": ("test/labels/*track_b*", ""),
    "views": ("views/{}.jsonl", "narrlit generate views writes it"),
    "negatives": ("negatives/*.jsonl", "narrlit generate negatives writes it"),
    "augmented": ("augmented/*.jsonl", "narrlit augment backtranslate writes it"),
}
"""Pattern of files below `data` by the name that tables have for them, and a remedy; the first five are the task's."""


SYSTEMS = sorted(file.stem for file in TABLES.glob("*.yaml"))


@cache
def read_tables(system: str) -> dict[str, Any]:
    """Read the tables of a system's paper; raise OptionError if there is no such system."""
    if system not in SYSTEMS:
        raise OptionError(f"no tables of {system!r}{did_you_mean(system, SYSTEMS)}; there are {', '.join(SYSTEMS)}")
    tables: dict[str, Any] = read_yaml(TABLES / f"{system}.yaml")
    return tables


def list_tables(names: Sequence[str]) -> str:
    """List every table and figure of systems' papers: what it shows, its cost, or why it is not computed."""
    lines = ["Rough times: two CPU cores with MiniLM / one GPU with the paper's encoder.", ""]
    for name in names:
        content = read_tables(name)
        lines.append(f"{name}: {content['paper']}; encoder {model_name(content['encoder'])}")
        for number, table in content["tables"].items():
            lines.append(f"  {number if number.startswith('figure') else f'table {number}'}: {table['shows']}")
            lines.append(f"      {_cost(table)}")
        lines.append("")
    return "\n".join(lines)


def _cost(table: dict[str, Any]) -> str:
    if "unavailable" in table:
        return f"not computed: {table['unavailable']}"
    rows = [row for row in table["rows"].values() if "unavailable" not in row]
    fits = {tuple(row.get(name) for name in ("fit", "encoder", "views")) for row in rows if "fit" in row}
    columns = [column for row in rows for column in row["published"]]
    crossvals = sum(column.startswith("CV") for column in columns)
    counts = {"evaluations": len(columns) - crossvals, "fits": len(fits), "cross-validations": crossvals}
    parts = [f"{count} {unit.removesuffix('s') if count == 1 else unit}" for unit, count in counts.items() if count]
    return f"{', '.join(parts)}; {' / '.join(table['time'])}"


def find_files(folder: Path, name: str, part: str = "") -> list[Path]:
    """Find files of a data folder by the name that tables have for them; `part` is a part of the file's own name.

    Raises:
        DataError: if there are none, naming what is missing and where it comes from.
    """
    pattern, remedy = FILES[name]
    pattern = pattern.format(f"*{part}*" if part else "*")
    paths = sorted(folder.glob(pattern))
    if not paths:
        raise DataError(f"{folder / pattern} is missing: {remedy}")
    return paths


def model_name(model: str) -> str:
    """Return the last part of a model's name; that of the packaged MiniLM is its hub's.

    >>> model_name("Qwen/Qwen3-Embedding-8B"), model_name("minilm")
    ('Qwen3-Embedding-8B', 'all-MiniLM-L6-v2')
    """
    return "all-MiniLM-L6-v2" if model == "minilm" else os.path.basename(model.rstrip("/"))  # noqa: PTH119 (of an id)


@dataclass(frozen=True)
class Backbone:
    """An encoder of a row.

    Attributes:
        model: as `--model` names it.
        options: of `narrlit fit`, which put it into a config.
        stand_in: which encoder of the paper it replaces; None: it is the paper's.
    """

    model: str
    options: tuple[str, ...] = ()
    stand_in: str | None = None

    @classmethod
    def of(cls, row: str | None, paper: str, given: Sequence[str]) -> "Backbone":
        """Find the encoder of a row.

        Args:
            row: encoder that the row names: an overlay of configs/backbones or a hub id; None: that of the paper.
            paper: the paper's encoder, which the configs name.
            given: encoders that the user has: one of the same name is used, else the first in place of `paper`.

        >>> Backbone.of(None, "Qwen/Qwen3-Embedding-8B", ["minilm"]).stand_in
        'minilm for Qwen3-Embedding-8B'
        """
        overlays = {Path(name).stem: str(packaged_configs() / name) for name in packaged_names("backbones")}
        models = {name: read_yaml(path)["model"]["init_args"]["encoder"]["model"] for name, path in overlays.items()}
        wanted = models.get(row or "", row or paper)
        same = next((one for one in given if model_name(models.get(one, one)) == model_name(wanted)), None)
        used = same or (given[0] if given and row is None else wanted)
        stand_in = None if used in (same, wanted) else f"{_shown(used)} for {model_name(wanted)}"
        model = models.get(used, used)
        if row is None and stand_in is None:  # as the config reads it
            return cls(model, () if model == paper else ("--model.encoder.model", model))
        overlay = next((name for name in (used, row) if name in models), "any")
        other = () if models[overlay] == model else ("--model.encoder.model", model)
        return cls(model, ("--config", overlays[overlay], *other), stand_in)

    def require(self, remedy: str = "") -> None:
        """Raise ModelError if the encoder is neither a folder nor on a hub in reach."""
        if not _present(self.model):
            raise ModelError(f"{self.model} is absent{remedy}")


def _shown(model: str) -> str:
    return model_name(model) if Path(model).exists() else model


@cache
def _present(model: str) -> bool:
    if model == "minilm" or Path(model).exists():
        return True
    from huggingface_hub import hf_hub_download

    try:
        with reading("encoder", model, error=ModelError):
            hf_hub_download(model, "config.json")
    except ModelError:
        return False
    return True
