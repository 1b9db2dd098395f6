"""Bookkeeping of distillation rounds: the best student of each, and whether it becomes the teacher."""

import math
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass
class Rounds:
    """State of a fit's rounds, as plain data for checkpoints and records.

    Attributes:
        current: number of the round in progress.
        teacher: of this round: its folder's name, validation accuracy and identity; None in a first round without one.
        student: the best of this round so far: its file, epoch and accuracy.
        kept: for each kind of candidate, those that the teacher's mask kept in this round so far, and their total.
        history: one entry for each finished round.
        without: number of finished rounds since the last promotion.
    """

    current: int = 0
    teacher: dict[str, Any] | None = None
    student: dict[str, Any] | None = None
    kept: dict[str, Any] = field(default_factory=dict)
    history: list[dict[str, Any]] = field(default_factory=list)
    without: int = 0

    def as_dict(self) -> dict[str, Any]:
        """Convert to plain data."""
        return asdict(self)

    def improves(self, accuracy: float | None) -> bool:
        """Compare a validation's accuracy with the round's best; the first of equals stays."""
        if accuracy is None or math.isnan(accuracy):
            return False
        return self.student is None or accuracy > self.student["accuracy"]

    def close(self) -> dict[str, Any]:
        """End the round, decide about its best student, and return the new entry of the history."""
        promoted, reason = verdict(
            self.student["accuracy"] if self.student else None, self.teacher["accuracy"] if self.teacher else None
        )
        self.without = 0 if promoted else self.without + 1
        entry = {
            "round": self.current,
            "promoted": promoted,
            "reason": reason,
            "student": {k: v for k, v in self.student.items() if k != "file"} if self.student else None,
            "teacher": self.teacher["name"] if self.teacher else None,
            "kept": {name: {"share": kept / total, "total": total} for name, (kept, total) in self.kept.items()},
        }
        self.history.append(entry)
        return entry

    @property
    def closed(self) -> bool:
        """True after the current round has ended."""
        return bool(self.history) and self.history[-1]["round"] == self.current

    def enter(self, number: int) -> None:
        """Begin a round, without a student."""
        self.current, self.student, self.kept = number, None, {}


def verdict(student: float | None, teacher: float | None) -> tuple[bool, str]:
    """Decide whether a round's best student becomes the teacher, and give the reason.

    Args:
        student: its validation accuracy; None where no validation gave one.
        teacher: its teacher's, None where there was no teacher.

    >>> print(*verdict(0.71, 0.70))
    True its accuracy 0.7100 beats the teacher's 0.7000
    >>> verdict(0.70, 0.70)[0], verdict(None, 0.5)[0], verdict(0.4, None)[0]
    (False, False, True)
    """
    if student is None or math.isnan(student):
        return False, "no validation gave an accuracy"
    if teacher is None:
        return True, "it is the first, and so the teacher of the next round"
    if student > teacher:
        return True, f"its accuracy {student:.4f} beats the teacher's {teacher:.4f}"
    relation = "only equals" if student == teacher else "does not beat"
    return False, f"its accuracy {student:.4f} {relation} the teacher's {teacher:.4f}"
