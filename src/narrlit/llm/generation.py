"""What generating negatives and views have in common: options, prompts, and the account of what came of it."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from narrlit.data.reading import counts
from narrlit.errors import OptionError
from narrlit.llm.messages import Sampling
from narrlit.llm.rounds import SOUND
from narrlit.prompts import Prompt, load_prompt


@dataclass(frozen=True)
class GenerationOptions:
    """How a model is asked to write.

    Attributes:
        attempts: how often is asked until a reply is sound, at most.
        candidates: of negatives: how many for each of theme, structure and outcome (3 if not given).
        temperature: 0.8 for negatives and 0.3 for views if not given; --leave-out temperature,top_p for models that
            refuse them.
        top_p: 0.9 for negatives if not given, left out for views.
        max_tokens: of a reply: 1200 for negatives and 2000 for views if not given.
        prompts: a folder with prompts of your own (negatives_theme.txt, negatives_structure.txt, negatives_outcome.txt,
            views.txt); those that it lacks are the package's.
    """

    attempts: int = 4
    candidates: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    max_tokens: int | None = None
    prompts: str | None = None

    def __post_init__(self) -> None:
        """Refuse what has no use.

        Raises:
            OptionError: if a value is out of range.
        """
        for name in ("attempts", "candidates", "max_tokens"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise OptionError(f"--{name.replace('_', '-')} {value}: at least 1 is needed")
        if self.temperature is not None and not 0 <= self.temperature <= 2:
            raise OptionError(f"--temperature {self.temperature}: 0 to 2 is needed")
        if self.top_p is not None and not 0 < self.top_p <= 1:
            raise OptionError(f"--top-p {self.top_p}: above 0, at most 1 is needed")

    def sampling(self, usual: Sampling, seed: int | None) -> Sampling:
        """How replies are drawn: as usual, but for what is given here."""
        return Sampling(
            max_tokens=usual.max_tokens if self.max_tokens is None else self.max_tokens,
            temperature=usual.temperature if self.temperature is None else self.temperature,
            top_p=usual.top_p if self.top_p is None else self.top_p,
            seed=seed,
        )

    def prompt(self, name: str) -> Prompt:
        """The user's prompt of this name, else the package's.

        Raises:
            OptionError: if there is no such folder, or the file can't be read.
        """
        if self.prompts is None:
            return load_prompt(name)
        folder = Path(self.prompts)
        if not folder.is_dir():
            raise OptionError(f"--prompts {self.prompts}: no such folder")
        own = folder / f"{name}.txt"
        return load_prompt(name, str(own) if own.exists() else None)


@dataclass(frozen=True)
class Shortfall:
    """An item that lacks something.

    Attributes:
        item: such as `row 3`.
        lacking: how many are lacking, by kind.
        reasons: why replies could not be used, and how many, by kind.
    """

    item: str
    lacking: dict[str, int]
    reasons: dict[str, dict[str, int]]

    @property
    def line(self) -> str:
        """For a person.

        >>> Shortfall("row 3", {"theme": 2}, {"theme": {"length": 3, "cut off": 5}}).line
        'row 3 lacks 2 theme (5 cut off, 3 length)'
        """
        parts = [f"{count} {kind} ({counts(self.reasons[kind])})" for kind, count in self.lacking.items()]
        return f"{self.item} lacks {', '.join(parts)}"


@dataclass(frozen=True)
class Account:
    """What came of a job.

    Attributes:
        items: how many rows or stories there were.
        verdicts: how many replies of each kind met which end: (kind, SOUND) or (kind, reason).
        shortfalls: the items that lack something, in order.
    """

    items: int
    verdicts: Counter[tuple[str, str]]
    shortfalls: list[Shortfall]

    @property
    def whole(self) -> int:
        """How many items have all that was wanted."""
        return self.items - len(self.shortfalls)

    def table(self, kinds: Iterable[str]) -> list[list[str]]:
        """Replies by verdict and kind, with sums, as cells: a header, what was sound, then the reasons, most first."""
        kinds = list(kinds)
        reasons = Counter[str]()
        for (_, verdict), count in self.verdicts.items():
            reasons[verdict] += count
        ordered = sorted(reasons, key=lambda reason: (reason != SOUND, -reasons[reason], reason))
        rows = [["replies", *kinds, "all"]]
        rows += [[v, *(str(self.verdicts[kind, v]) for kind in kinds), str(reasons[v])] for v in ordered]
        sums = [sum(count for (of, _), count in self.verdicts.items() if of == kind) for kind in kinds]
        return [*rows, ["sum", *map(str, sums), str(sum(reasons.values()))]]

    def as_dict(self) -> dict[str, Any]:
        """For a report's JSON."""
        by_kind: dict[str, dict[str, int]] = {}
        for (kind, verdict), count in sorted(self.verdicts.items()):
            by_kind.setdefault(kind, {})[verdict] = count
        shortfalls = [asdict(shortfall) for shortfall in self.shortfalls]
        return {"items": self.items, "whole": self.whole, "replies": by_kind, "shortfalls": shortfalls}
