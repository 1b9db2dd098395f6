"""Provenance of a datamodule's sets, for run.json."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TypedDict

from narrlit.datamodules.hard_examples import HardExampleRecord
from narrlit.datamodules.pseudo_labels import PseudoLabelRecord
from narrlit.preprocessing.pseudonyms import PseudonymOptions


class ContaminationFlags(TypedDict):
    """Use of validation stories or triples in training."""

    mined_validation: bool
    transductive: bool


@dataclass(frozen=True)
class StoryWorldRecord:
    """Synthetic triples of a set, and the settings that they were made with."""

    seed: int
    triples: int
    views: bool | None = None
    negatives_per_aspect: int | None = None
    false_negatives: float | None = None


@dataclass(frozen=True)
class DivisionRecord:
    """Validation triples that are evaluated, and those that are set apart."""

    share: float
    evaluated: int
    set_apart: int


@dataclass(frozen=True)
class Provenance:
    """Origin of the rows of a set, and the changes made to them; None where that does not apply.

    Attributes:
        files: path, digest and counts of each file, as `ReadReport.provenance` describes it.
        views: files of the stories' views, and how many stories got positional ones.
        storyworld: synthetic triples.
        fold: the fold of a cross-validation.
        pseudonyms: how names were replaced.
        divided: how validation triples were divided.
        hard_examples: how many examples are hard.
        pseudo_labels: labels of the stories.

    >>> Provenance(divided=DivisionRecord(0.8, 4, 1)).as_dict()
    {'divided': {'share': 0.8, 'evaluated': 4, 'set_apart': 1}}
    """

    files: list[dict[str, object]] | None = None
    views: dict[str, object] | None = None
    storyworld: StoryWorldRecord | None = None
    fold: dict[str, object] | None = None
    pseudonyms: PseudonymOptions | None = None
    divided: DivisionRecord | None = None
    hard_examples: HardExampleRecord | None = None
    pseudo_labels: PseudoLabelRecord | None = None

    def as_dict(self) -> dict[str, object]:
        """Return plain data for run.json, without what does not apply."""
        entry = _known(asdict(self))
        return {name: _known(value) if isinstance(value, dict) else value for name, value in entry.items()}


def _known(fields: Mapping[str, object]) -> dict[str, object]:
    return {name: value for name, value in fields.items() if value is not None}
