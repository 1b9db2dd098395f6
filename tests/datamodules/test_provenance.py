"""Provenance as run.json has it."""

from narrlit.datamodules.hard_examples import HardExampleRecord
from narrlit.datamodules.provenance import Provenance, StoryWorldRecord
from narrlit.datamodules.pseudo_labels import ClusterRecord, PseudoLabelRecord


def test_the_record_omits_none_but_not_zero():
    provenance = Provenance(
        storyworld=StoryWorldRecord(0, 4, negatives_per_aspect=0, false_negatives=0.0),
        hard_examples=HardExampleRecord(0, 1, 0),
        pseudo_labels=PseudoLabelRecord("positional", "down", 0, {"theme": ClusterRecord([3, 1], 0.5)}),
    )

    assert provenance.as_dict() == {
        "storyworld": {"seed": 0, "triples": 4, "negatives_per_aspect": 0, "false_negatives": 0.0},
        "hard_examples": {"wrong": 0, "allowed": 1, "hard": 0},
        "pseudo_labels": {
            "source": "positional",
            "rounding": "down",
            "seed": 0,
            "clusters": {"theme": {"sizes": [3, 1], "inertia": 0.5}},
            "transductive": False,
        },
    }
    assert Provenance().as_dict() == {}
    assert Provenance(files=[]).as_dict() == {"files": []}
