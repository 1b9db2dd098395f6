"""Search spaces: which options of `narrlit fit` are tried, and between which values; a YAML file says so.

    model.init_args.optimization.learning_rate: {low: 1.0e-5, high: 1.0e-3, log: true}
    model.init_args.margin: {low: 0.1, high: 1.0, step: 0.1}
    data.init_args.loading.batch_size: {choices: [16, 32, 64]}

A range is of whole numbers where both its ends are.
"""

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from narrlit.errors import OptionError
from narrlit.optional import require

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution

Number = int | float
Scalar = bool | int | float | str | None

FIELDS = ("low", "high", "step", "log", "choices")
NAME = re.compile(r"[A-Za-z_]\w*(\.\w+)*")
NO_SETTINGS = ("config", "help", "print_config")


@dataclass(frozen=True)
class Range:
    """Numbers from `low` to `high`, both included.

    Attributes:
        low: the least; both ends int: whole numbers.
        high: the most.
        step: only low, low + step, ...
        log: sampled evenly by their logarithms.
    """

    low: Number
    high: Number
    step: Number | None = None
    log: bool = False

    @property
    def probes(self) -> tuple[Number, ...]:
        """Values that must do for all to do."""
        return self.low, self.high

    def distribution(self) -> "BaseDistribution":
        """As Optuna has it."""
        made = require("optuna", "tune").distributions
        if isinstance(self.low, int) and isinstance(self.high, int):
            found: BaseDistribution = made.IntDistribution(self.low, self.high, log=self.log, step=self.step or 1)
        else:
            found = made.FloatDistribution(self.low, self.high, log=self.log, step=self.step)
        return found


@dataclass(frozen=True)
class Choices:
    """A few values, in no order."""

    choices: tuple[Scalar, ...]

    @property
    def probes(self) -> tuple[Scalar, ...]:
        """Values that must do for all to do."""
        return self.choices

    def distribution(self) -> "BaseDistribution":
        """As Optuna has it."""
        found: BaseDistribution = require("optuna", "tune").distributions.CategoricalDistribution(self.choices)
        return found


Space = dict[str, Range | Choices]


def read_space(path: str | Path) -> Space:
    """The ranges of a file by the options' names, sorted, so that the file's order decides nothing.

    Raises:
        OptionError: naming file and option.
    """
    try:
        found = yaml.load(Path(path).read_text(encoding="utf-8"), _Strict)  # noqa: S506 (a SafeLoader)
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "no UTF-8 text"
        raise OptionError(f"--space {path}: {reason}; name a YAML file of ranges") from error
    except yaml.YAMLError as error:
        raise OptionError(f"--space {path}: {' '.join(str(error).split())}") from error
    if not isinstance(found, dict) or not found:
        raise OptionError(f"--space {path}: no mapping of options to ranges, such as NAME: {{low: 1, high: 9}}")
    for name in found:
        _check_name(name, f"--space {path}: {name}")
    return {name: _range(found[name], f"--space {path}: {name}") for name in sorted(found)}


def plain(space: Space) -> dict[str, Any]:
    """A space as plain data."""
    return {name: {k: list(v) if k == "choices" else v for k, v in asdict(it).items()} for name, it in space.items()}


def as_options(settings: Mapping[str, Scalar]) -> list[str]:
    """Settings as options of `narrlit fit`.

    >>> as_options({"a.b": 1e-05, "c": True, "d": None, "e": "linear"})
    ['--a.b=1e-05', '--c=true', '--d=null', '--e=linear']
    """
    words = {True: "true", False: "false", None: "null"}
    return [
        f"--{name}={words[value] if value is None or isinstance(value, bool) else value}"
        for name, value in settings.items()
    ]


class _Strict(yaml.SafeLoader):
    """Refuses a name that stands twice, of which YAML would silently take the last."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        names = [key.value for key, _ in node.value]
        for name in names:
            if names.count(name) > 1:
                raise yaml.YAMLError(f"{name} stands twice")
        return super().construct_mapping(node, deep)


def _check_name(name: Any, place: str) -> None:
    if not isinstance(name, str) or not NAME.fullmatch(name) or name in NO_SETTINGS:
        raise OptionError(
            f"{place} is no setting of narrlit fit; names stand without leading dashes, such as model.init_args.margin"
        )


def _range(given: Any, place: str) -> Range | Choices:
    fields = given if isinstance(given, dict) else {}
    unknown = [field for field in fields if field not in FIELDS]
    if unknown:
        raise OptionError(f"{place}: there is no {unknown[0]}; there are {', '.join(FIELDS)}")
    if "choices" in fields:
        if len(fields) > 1:
            raise OptionError(f"{place}: choices stand alone, without {next(k for k in fields if k != 'choices')}")
        return _choices(fields["choices"], place)
    if not {"low", "high"} <= fields.keys():
        raise OptionError(f"{place}: low and high, or choices, are needed")
    return _numbers(fields, place)


def _choices(given: Any, place: str) -> Choices:
    if not isinstance(given, list) or len(given) < 2:
        raise OptionError(f"{place}: choices must be a list of at least two values")
    for value in given:
        if not isinstance(value, Scalar):
            raise OptionError(f"{place}: {value} is no choice; texts, numbers, true, false and null are")
    options = as_options({str(at): value for at, value in enumerate(given)})
    values = [option.partition("=")[2] for option in options]
    for value in values:
        if values.count(value) > 1:
            raise OptionError(f"{place}: the choice {value} stands twice")
    return Choices(tuple(given))


def _numbers(fields: dict[str, Any], place: str) -> Range:
    log = fields.get("log", False)
    if not isinstance(log, bool):
        raise OptionError(f"{place}: log is {log}; write true or false")
    low, high = (_number(fields[end], end, place) for end in ("low", "high"))
    step = None if fields.get("step") is None else _number(fields["step"], "step", place)
    if low >= high:
        raise OptionError(f"{place}: low {low} is not below high {high}")
    if log and low <= 0:
        raise OptionError(f"{place}: log needs a low above 0, not {low}")
    if step is not None:
        _check_step(low, high, step, place, log)
    return Range(low, high, step, log)


def _check_step(low: Number, high: Number, step: Number, place: str, log: bool) -> None:
    if log:
        raise OptionError(f"{place}: log and step exclude each other")
    whole = isinstance(low, int) and isinstance(high, int)
    if step <= 0 or (whole and not isinstance(step, int)):
        raise OptionError(f"{place}: step is {step}; a {'whole ' if whole else ''}number above 0 is needed")
    if (Decimal(str(high)) - Decimal(str(low))) % Decimal(str(step)):
        raise OptionError(f"{place}: steps of {step} lead from low {low} past high {high}")


def _number(given: Any, field: str, place: str) -> Number:
    if isinstance(given, str):
        try:
            given = float(given)  # YAML takes 1e-5, without a point, for text
        except ValueError:
            raise OptionError(f"{place}: {field} is {given!r}; a number is needed") from None
    if isinstance(given, bool) or not isinstance(given, int | float) or not abs(given) < float("inf"):
        raise OptionError(f"{place}: {field} is {given}; a number is needed")
    return given
