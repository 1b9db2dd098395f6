"""Callbacks, one file each; `rounds` and `teachers` are what TeacherPromotion works with."""

from narrlit.callbacks.answer_record import AnswerRecord
from narrlit.callbacks.best_checkpoint import BestCheckpoint
from narrlit.callbacks.last_checkpoint import LastCheckpoint
from narrlit.callbacks.prediction_writer import PredictionWriter
from narrlit.callbacks.projector import Projector
from narrlit.callbacks.run_record import RunRecord
from narrlit.callbacks.teacher_promotion import TeacherPromotion

__all__ = [
    "AnswerRecord",
    "BestCheckpoint",
    "LastCheckpoint",
    "PredictionWriter",
    "Projector",
    "RunRecord",
    "TeacherPromotion",
]
