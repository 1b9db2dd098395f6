"""Provenance of a datamodule's sets, for run.json."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TypedDict

from narrlit.datamodules.hard_examples import HardExampleRecord
from narrlit.datamodules.pseudo_labels import PseudoLabelRecord
from narrlit.preprocessing.pseudonyms import PseudonymOptions


class ContaminationFlags(TypedDict):
    """Flags of a run that used validation triples or unlabeled stories in training."""

    mined_validation: bool
    transductive: bool


@dataclass(frozen=True)
class StoryWorldRecord:
    """Number of synthetic triples of a set, and the settings with which they were generated."""

    seed: int
    triples: int
    views: bool | None = None
    negatives_per_aspect: int | None = None
    false_negatives: float | None = None


@dataclass(frozen=True)
class DivisionRecord:
    """Share and number of evaluated validation triples, and number of triples set apart."""

    share: float
    evaluated: int
    set_apart: int


@dataclass(frozen=True)
class Provenance:
    """Origin of the rows of a set, and the changes made to them; fields that do not apply are None.

    Attributes:
        files: path, digest and counts of each file, from `ReadReport.provenance`.
        views: files of the stories' views, and the number of stories with positional views.
        storyworld: settings of synthetic triples.
        fold: fold of a cross-validation.
        pseudonyms: settings of pseudonymization.
        divided: division of the validation triples.
        hard_examples: counts of hard examples.
        pseudo_labels: origin of the stories' pseudo-labels.

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
        """Return plain data for run.json, without fields that are None."""
        record = {}
        for name, value in _without_none(asdict(self)).items():
            record[name] = _without_none(value) if isinstance(value, dict) else value
        return record


def _without_none(fields: Mapping[str, object]) -> dict[str, object]:
    """Remove fields that are None."""
    return {name: value for name, value in fields.items() if value is not None}
