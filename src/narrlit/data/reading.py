"""What a reader gives back: the records, and how many rows were dropped or look wrong, by reason."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, TypeVar

from narrlit.data.fields import RowError, has_mojibake
from narrlit.data.rows import RawFile
from narrlit.errors import DataError

T = TypeVar("T")

Parsed = tuple[T, dict[str, str]]
"""A record, and its texts by the name of the field they stand in."""


@dataclass(frozen=True)
class Reading(Generic[T]):
    """A file's records. `dropped` and `suspicious` count rows by reason; suspicious rows are among the records."""

    records: list[T]
    path: Path
    dropped: dict[str, int] = field(default_factory=dict)
    suspicious: dict[str, int] = field(default_factory=dict)

    @property
    def total(self) -> int:
        """How many rows the file has, used or dropped."""
        return len(self.records) + sum(self.dropped.values())

    def summary(self) -> str:
        """One line for logs.

        >>> Reading(["x"], Path("a/x.jsonl"), {"empty text_a": 1}).summary()
        'x.jsonl: 1 of 2 rows, dropped 1 (1 empty text_a)'
        """
        line = f"{self.path.name}: "
        if self.dropped:
            line += f"{len(self.records)} of {_rows(self.total)}, "
            line += f"dropped {sum(self.dropped.values())} ({counts(self.dropped)})"
        else:
            line += _rows(self.total)
        return f"{line}; suspicious: {counts(self.suspicious)}" if self.suspicious else line


def counts(reasons: dict[str, int]) -> str:
    """Reasons and how often each was met, the most frequent first.

    >>> counts({"empty text_a": 1, "no label": 3})
    '3 no label, 1 empty text_a'
    """
    ordered = sorted(reasons.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{count} {reason}" for reason, count in ordered)


def collect(raw: RawFile, parse: Callable[[object], Parsed[T]], *, strict: bool) -> Reading[T]:
    """Parse each row; a row whose parsing raises RowError is dropped and counted.

    Suspicious rows are kept and counted, strict or not: a shared task's files hold some, and may not be edited.

    Raises:
        DataError: if no row can be used, or, when strict, at the first row that would be dropped.
    """
    records: list[T] = []
    dropped: Counter[str] = Counter()
    suspicious: Counter[str] = Counter()
    for row in raw.rows:
        try:
            record, texts = parse(row.value)
        except RowError as fault:
            if strict:
                raise DataError(f"{raw.at(row.line)}: {fault}; mend the row") from fault
            dropped[str(fault)] += 1
            continue
        for name, text in texts.items():
            if has_mojibake(text):
                suspicious[f"mojibake in {name}"] += 1
        records.append(record)
    if not records:
        raise DataError(
            f"{raw.path}: none of its {_rows(len(raw.rows))} can be used ({counts(dropped)}); mend the file"
        )
    return Reading(records, raw.path, dict(dropped), dict(suspicious))


def _rows(count: int) -> str:
    return f"{count} row" if count == 1 else f"{count} rows"
