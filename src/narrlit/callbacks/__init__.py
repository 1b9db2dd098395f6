"""Lightning callbacks; `rounds` and `teachers` serve TeacherPromotion."""

from narrlit.callbacks.checkpoints import BestCheckpoint, LastCheckpoint
from narrlit.callbacks.display import LogInterval, ProgressBar, RunLogger
from narrlit.callbacks.projector import Projector
from narrlit.callbacks.run_record import RunRecord
from narrlit.callbacks.teacher_promotion import TeacherPromotion
from narrlit.callbacks.triple_answers import PredictionWriter, ValidationAnswers

__all__ = [
    "BestCheckpoint",
    "LastCheckpoint",
    "LogInterval",
    "PredictionWriter",
    "ProgressBar",
    "Projector",
    "RunLogger",
    "RunRecord",
    "TeacherPromotion",
    "ValidationAnswers",
]
