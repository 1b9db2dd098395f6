"""Lightning callbacks for training and evaluation; the module `teachers` supports TeacherPromotion."""

from narrlit.callbacks.checkpoints import BestCheckpoint, LastCheckpoint
from narrlit.callbacks.display import LogInterval, ProgressBar, Projector, RunLogger
from narrlit.callbacks.divergence import DivergedError, StopOnDivergence
from narrlit.callbacks.run_record import RunRecord
from narrlit.callbacks.teacher_promotion import TeacherPromotion
from narrlit.callbacks.triple_answers import PredictionWriter

__all__ = [
    "BestCheckpoint",
    "DivergedError",
    "LastCheckpoint",
    "LogInterval",
    "PredictionWriter",
    "ProgressBar",
    "Projector",
    "RunLogger",
    "RunRecord",
    "StopOnDivergence",
    "TeacherPromotion",
]
