"""Search space of `narrlit.tune`: ranges of settings, which fits must accept."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from narrlit.configuration import FitSettings, find_config, read_yaml
from narrlit.errors import NarrlitError, OptionError, mistake_behind, reading
from narrlit.experiments.fitting import Config
from narrlit.optional import require

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution

Space = dict[str, "BaseDistribution"]
MakeConfig = Callable[[FitSettings], Config]
SECTIONS = ("model", "data", "trainer", "seed_everything")
DATA_SETTINGS = ("loading", "hard_examples", "pseudo_labels")
"""Parts of the data settings that determine how examples are used; all others select the examples."""


@dataclass(frozen=True)
class SearchSpace:
    """Search space: ranges of settings.

    Attributes:
        written: ranges by name, as the user wrote them.
        distributions: distributions for Optuna; with integer limits, only integers are sampled.
        source: file of the space, for messages; empty without one.
    """

    written: Mapping[str, object]
    distributions: Space
    source: str = ""

    @classmethod
    def read(cls, space: str | Path | Mapping[str, Any]) -> "SearchSpace":
        """Read a search space, sorted by name.

        Raises:
            OptionError: if a setting is invalid; the message names it.
        """
        if isinstance(space, str | Path):
            source = find_config(str(space), "space")
            content = read_yaml(source)
        else:
            source = ""
            content = space
        if not isinstance(content, Mapping) or not content:
            raise OptionError("no_ranges", source=source)
        written: dict[str, object] = {}
        distributions: Space = {}
        for name in sorted(content, key=str):
            written[str(name)] = content[name]
            distributions[str(name)] = _range(source, str(name), content[name])
        return cls(written, distributions, source)

    def check(self, config_of: MakeConfig, given: Config) -> None:
        """Check before the first trial that fits accept the limits or choices of each range.

        Raises:
            OptionError: if a fit refuses a value, or a setting has no effect or changes the examples.
        """
        shared_settings = _choosing_examples(given)
        for name, distribution in self.distributions.items():
            configs = [self._config_with(config_of, name, value) for value in _ends(distribution)]
            if all(config == configs[0] for config in configs):
                raise OptionError("range_without_effect", source=self.source, name=name)
            for config in configs:
                if _choosing_examples(config) != shared_settings:
                    raise OptionError("range_of_examples", source=self.source, name=name, known=DATA_SETTINGS)

    def _config_with(self, config_of: MakeConfig, name: str, value: object) -> Config:
        try:
            return config_of({name: value})
        except (NarrlitError, ValueError) as error:
            problem = mistake_behind(error) or str(error)
            raise OptionError("refused_value", source=self.source, name=name, value=value, problem=problem) from error


def _range(source: str, name: str, spec: Any) -> "BaseDistribution":
    """Read the range of a setting."""
    if name.partition(".")[0] not in SECTIONS:
        raise OptionError("not_a_setting", source=source, name=name)
    with reading("broken_range", source, error=OptionError, name=name):
        distribution = _distribution(**spec)
    if distribution.single():
        raise OptionError("single_value", source=source, name=name)
    return distribution


def _distribution(**spec: Any) -> "BaseDistribution":
    library = require("optuna", "tune").distributions
    if "choices" in spec:
        kind = library.CategoricalDistribution
    elif isinstance(spec.get("low"), int) and isinstance(spec.get("high"), int):
        kind = library.IntDistribution
    else:
        kind = library.FloatDistribution
        for end in ("low", "high"):
            spec[end] = float(spec[end])
    distribution: BaseDistribution = kind(**spec)
    return distribution


def _ends(distribution: Any) -> Sequence[object]:
    """Return the choices of a range, or its limits."""
    if hasattr(distribution, "choices"):
        return list(distribution.choices)
    return distribution.low, distribution.high


def _choosing_examples(config: Config) -> dict[str, object]:
    """Return the settings of a configuration that select its examples."""
    source = config["data"]["init_args"]["source"]["init_args"]
    return {name: value for name, value in source.items() if name not in DATA_SETTINGS}
