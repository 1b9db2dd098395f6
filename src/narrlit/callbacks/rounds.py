"""The book-keeping of distillation rounds: which student is the round's best, and whether it becomes the teacher."""

import math
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass
class Rounds:
    """What the rounds of a fit have brought so far, as plain data for checkpoints and records.

    Attributes:
        entered: the round in which the student is.
        teacher: of this round: its folder's name, validation accuracy and the like; None in a first round without one.
        student: the best of this round so far: its file, epoch and accuracy.
        kept: candidates that the teacher's mask kept in this round so far, and of how many, by kind.
        history: one entry a round that has ended.
        without: rounds in succession that ended without a promotion.
    """

    entered: int = 0
    teacher: dict[str, Any] | None = None
    student: dict[str, Any] | None = None
    kept: dict[str, Any] = field(default_factory=dict)
    history: list[dict[str, Any]] = field(default_factory=list)
    without: int = 0

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)

    def improves(self, accuracy: float | None) -> bool:
        """Whether a look at the validation triples finds the round's best student so far; the first of equals stays."""
        if accuracy is None or math.isnan(accuracy):
            return False
        return self.student is None or accuracy > self.student["accuracy"]

    def close(self) -> dict[str, Any]:
        """End the round: decide about its best student, and note it in the history; the entry is returned."""
        accuracy = self.student["accuracy"] if self.student else None
        beaten = self.teacher["accuracy"] if self.teacher else None
        promoted, reason = verdict(accuracy, beaten)
        self.without = 0 if promoted else self.without + 1
        entry = {
            "round": self.entered,
            "promoted": promoted,
            "reason": reason,
            "student": {k: v for k, v in self.student.items() if k != "file"} if self.student else None,
            "teacher": self.teacher["name"] if self.teacher else None,
            "kept": {name: {"share": kept / of, "of": of} for name, (kept, of) in self.kept.items()},
        }
        self.history.append(entry)
        return entry

    @property
    def closed(self) -> bool:
        """Whether the round that was entered last has ended."""
        return bool(self.history) and self.history[-1]["round"] == self.entered

    def enter(self, number: int) -> None:
        """Begin a round: it has no student yet."""
        self.entered = number
        self.student = None
        self.kept = {}


def verdict(student: float | None, teacher: float | None) -> tuple[bool, str]:
    """Whether a round's best student becomes the teacher, and why.

    Args:
        student: its validation accuracy; None where no look gave one.
        teacher: its teacher's, None where there was no teacher.

    >>> print(*verdict(0.71, 0.70))
    True its accuracy 0.7100 beats the teacher's 0.7000
    >>> verdict(0.70, 0.70)[0], verdict(None, 0.5)[0], verdict(0.4, None)[0]
    (False, False, True)
    """
    if student is None or math.isnan(student):
        return False, "no look at the validation triples gave an accuracy"
    if teacher is None:
        return True, "it is the first, and so the teacher of the next round"
    if student > teacher:
        return True, f"its accuracy {student:.4f} beats the teacher's {teacher:.4f}"
    if student == teacher:
        return False, f"its accuracy {student:.4f} only equals the teacher's"
    return False, f"its accuracy {student:.4f} does not beat the teacher's {teacher:.4f}"
