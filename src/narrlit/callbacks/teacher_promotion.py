"""Distillation rounds within one fit (HITS): a student that beats its teacher becomes the teacher of the next round."""

import shutil
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NotRequired, TypedDict, cast

import lightning as L
from lightning.pytorch.callbacks import Callback, EarlyStopping, Timer
from lightning.pytorch.trainer.states import TrainerFn
from lightning_utilities.core.rank_zero import rank_zero_info
from safetensors.torch import save_file

from narrlit.callbacks import teachers
from narrlit.callbacks.run_record import EvaluationRecord, RecordFields, evaluation_record
from narrlit.compat.lightning import undeclared
from narrlit.datamodules.story_data import data_of
from narrlit.distributed import check_shared
from narrlit.embedding_cache.space import CacheDtype
from narrlit.errors import ModelError, OptionError
from narrlit.files import atomic_path
from narrlit.models.weights import read_weights, restore_weights, trained_weights
from narrlit.objectives.self_distillation import SelfDistillation

FIRST = "first.safetensors"
STUDENTS = "students"


class Student(EvaluationRecord):
    """Best student of a round so far: its evaluation, and the path of its weights in the folder of the rounds."""

    file: str


class KeptCandidates(TypedDict):
    """Share of the candidates that a teacher's mask has kept, and their total number."""

    share: float
    total: int


class RoundRecord(TypedDict):
    """Record of a finished round; `folder` contains the promoted student, if there is one."""

    round: int
    promoted: bool
    reason: str
    student: EvaluationRecord | None
    teacher: str | None
    kept: dict[str, KeptCandidates]
    folder: NotRequired[str]


@dataclass
class Rounds:
    """State of the distillation rounds, as plain data for checkpoints and records.

    Attributes:
        current: number of the round in progress, from 0.
        teacher: name, validation accuracy and identity of this round's teacher; None in a first round without one.
        student: file, epoch and accuracy of the best student of this round so far; None before the first validation.
        kept: for each kind of candidate, how many the teacher's mask has kept so far, and how many there were.
        history: records of the finished rounds.
        without: number of finished rounds since the last promotion.
    """

    current: int = 0
    teacher: teachers.Teacher | None = None
    student: Student | None = None
    kept: dict[str, tuple[int, int]] = field(default_factory=dict)
    history: list[RoundRecord] = field(default_factory=list)
    without: int = 0

    def improves(self, accuracy: float | None) -> bool:
        """Return True if an accuracy is above the best of the round so far; None and NaN are not."""
        best = self.student["accuracy"] if self.student else None
        return accuracy is not None and accuracy > (-1 if best is None else best)

    def close(self) -> RoundRecord:
        """End the round: decide if its best student is promoted, add a record to the history, and return it."""
        student = self.student["accuracy"] if self.student else None
        teacher = self.teacher["accuracy"] if self.teacher else None
        promoted, reason = verdict(student, teacher)
        self.without = 0 if promoted else self.without + 1
        record: RoundRecord = {
            "round": self.current,
            "promoted": promoted,
            "reason": reason,
            "student": _without_file(self.student) if self.student else None,
            "teacher": self.teacher["name"] if self.teacher else None,
            "kept": self._kept_record(),
        }
        self.history.append(record)
        return record

    def _kept_record(self) -> dict[str, KeptCandidates]:
        """Return the share and number of kept candidates by kind."""
        record: dict[str, KeptCandidates] = {}
        for name, (number, total) in self.kept.items():
            record[name] = {"share": number / total, "total": total}
        return record

    @property
    def closed(self) -> bool:
        """True after the current round has ended."""
        return bool(self.history) and self.history[-1]["round"] == self.current

    def enter(self, number: int) -> None:
        """Begin a round without a best student yet."""
        self.current, self.student, self.kept = number, None, {}


def _summary(record: RoundRecord) -> str:
    """Describe a finished round in one line."""
    decision = "promoted" if record["promoted"] else "not promoted"
    line = f"round {record['round']}: best student {decision}: {record['reason']}"
    if not record["kept"]:
        return line
    shares = [f"{name} {kept['share']:.3f}" for name, kept in record["kept"].items()]
    return f"{line}; share of candidates that the teacher's mask kept: {', '.join(shares)}"


def _without_file(student: Student) -> EvaluationRecord:
    """Return a student's evaluation alone."""
    evaluation: dict[str, object] = dict(student)
    del evaluation["file"]
    return cast(EvaluationRecord, evaluation)


def verdict(student: float | None, teacher: float | None) -> tuple[bool, str]:
    """Decide by validation accuracy if a student becomes the teacher of the next round; return also the reason.

    The student's accuracy is None if no validation gave one, the teacher's is None in a round without a teacher.

    >>> print(*verdict(0.71, 0.70))
    True its accuracy 0.7100 beats the teacher's 0.7000
    >>> verdict(0.70, 0.70)[0], verdict(None, 0.5)[0], verdict(0.4, None)[0]
    (False, False, True)
    """
    if student is None:
        return False, "no validation gave an accuracy"
    if teacher is None:
        return True, "the round had no teacher"
    relation = "beats" if student > teacher else "only equals" if student == teacher else "does not beat"
    return student > teacher, f"its accuracy {student:.4f} {relation} the teacher's {teacher:.4f}"


class TeacherPromotion(Callback):
    """Callback that divides a fit of R * E epochs into R distillation rounds of E epochs.

    Every round begins with the student's initial weights, a new optimizer and a new learning-rate schedule. At the end
    of a round, its best student is promoted if its validation accuracy is higher than the teacher's. A promoted student
    is written to a model folder `rounds/round_N` in the run's directory. At the start of the next round, it embeds
    every story once, and the new student learns from these embeddings.

    The decision is made at the end of the last epoch of a round, before the checkpoint of that epoch is written. It
    takes effect at the start of the next epoch, also in a fit that is resumed from that checkpoint.

    Source: HITS, section 3.3 (after Born-Again Networks).
    """

    def __init__(
        self, rounds: int = 2, patience: int = 1, teacher: str | None = None, embedding_dtype: CacheDtype = "float32"
    ) -> None:
        """Set the number of rounds.

        Args:
            rounds: number of rounds R; trainer.max_epochs must be a multiple of it.
            patience: number of consecutive rounds without a promotion after which the fit ends.
            teacher: teacher of the first round: a folder (such as rounds/round_0 of an earlier fit), a run, a
                checkpoint or a hub id; None: the first round has no teacher.
            embedding_dtype: number format of the teacher's cached embeddings.
        """
        if rounds < 1 or patience < 1:
            raise OptionError("rounds_and_patience", rounds=rounds, patience=patience)
        self.rounds = rounds
        self.patience = patience
        self.teacher = teacher
        self.embedding_dtype: CacheDtype = embedding_dtype
        self.state = Rounds()
        self._epochs = 1
        self._folder = Path()
        self._resumed: dict[str, Any] | None = None

    def setup(self, trainer: L.Trainer, pl_module: L.LightningModule, stage: str) -> None:
        """Check that the fit can be divided into rounds, and that all processes see the run's directory."""
        if stage != "fit" or undeclared(trainer).fast_dev_run:
            return
        if not isinstance(pl_module, SelfDistillation):
            raise OptionError("rounds_need_self_distillation", objective=type(pl_module).__name__)
        epochs = trainer.max_epochs or 0
        if epochs < 1 or epochs % self.rounds:
            raise OptionError("epochs_of_rounds", epochs=epochs, rounds=self.rounds)
        # A fit that stopped within a round would leave its promotion undecided.
        callbacks = undeclared(trainer).callbacks
        stopping = [type(callback).__name__ for callback in callbacks if isinstance(callback, EarlyStopping | Timer)]
        if trainer.max_steps != -1:
            stopping.append("trainer.max_steps")
        if stopping:
            raise OptionError("stop_within_round", stopping=stopping[0])
        self._epochs = epochs // self.rounds
        pl_module.rounds = self.rounds
        if trainer.loggers:
            check_shared(Path(str(trainer.log_dir)), "trainer.logger.init_args.save_dir")

    def on_train_start(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        """Begin the first round, or resume the round of a checkpoint; a fit without patience left ends at once."""
        if not self._active(trainer):
            return
        student = _student(pl_module)
        if not trainer.loggers:
            raise OptionError("rounds_need_logger")
        if not undeclared(trainer).limit_val_batches or not len(data_of(trainer).triples["validation"]):
            raise OptionError("rounds_need_validation")
        self._folder = Path(str(trainer.log_dir)) / "rounds"
        if trainer.ckpt_path:
            self._resume(trainer)
        else:
            self._start(trainer, student)
        student.round, student.kept = self.state.current, self.state.kept
        if self.state.closed:
            self._check_patience(trainer)
        else:
            self._teach(trainer, student)

    def _start(self, trainer: L.Trainer, student: SelfDistillation) -> None:
        """Save the student's initial weights, and evaluate the teacher of the first round, if there is one."""
        if self._folder.is_dir() and any(self._folder.iterdir()):
            raise OptionError("rounds_of_other_fit", folder=self._folder)
        trainer.strategy.barrier()  # no process may write before all have checked the folder
        self._save(trainer, student, FIRST)
        if self.teacher is not None:
            self.state.teacher = teachers.given_teacher(self.teacher, trainer, student)

    def _resume(self, trainer: L.Trainer) -> None:
        """Copy the rounds of the resumed fit to this run, and check that they are complete.

        Raises:
            OptionError: if the checkpoint has no rounds, or rounds of another length.
            ModelError: if a required file or folder is missing.
        """
        if self._resumed is None:
            raise OptionError("checkpoint_without_rounds", path=trainer.ckpt_path)
        if self._resumed["epochs"] != self._epochs:
            raise OptionError(
                "other_epochs_of_rounds", path=trainer.ckpt_path, recorded=self._resumed["epochs"], epochs=self._epochs
            )
        original = Path(self._resumed["folder"])
        next_to_checkpoint = Path(str(trainer.ckpt_path)).parent.parent / "rounds"
        home = original if original.is_dir() else next_to_checkpoint
        if not home.is_dir():
            raise ModelError("missing_rounds", folder=original)
        if trainer.is_global_zero and home.resolve() != self._folder.resolve():
            shutil.copytree(home, self._folder, dirs_exist_ok=True)
        trainer.strategy.barrier()
        self._check_complete()

    def _check_complete(self) -> None:
        """Check that initial weights, best student and promoted teachers are in the folder."""
        required = [FIRST]
        if self.state.student and not self.state.closed:
            required.append(self.state.student["file"])
        for name in required:
            if not (self._folder / name).is_file():
                raise ModelError("missing_file_of_rounds", path=self._folder / name)
        for record in self.state.history:
            if record["promoted"]:
                teachers.check_teacher(self._folder / record["folder"])

    def on_train_epoch_start(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        """Begin the next round: load its teacher, and reset the student to its initial weights."""
        number = trainer.current_epoch // self._epochs
        if not self._active(trainer) or number == self.state.current:
            return
        student = _student(pl_module)
        self._replace_teacher(student)
        self._remove_students(trainer)  # the checkpoint at the end of the round no longer refers to them
        self.state.enter(number)
        student.round, student.kept = number, self.state.kept
        self._teach(trainer, student)
        restore_weights(student.encoder, read_weights(self._folder / FIRST))
        trainer.strategy.setup_optimizers(trainer)
        teacher = self.state.teacher
        name = f"teacher {teacher['name']} ({teacher['accuracy']:.4f})" if teacher else "no teacher"
        rank_zero_info(f"round {number}: the student starts from its initial weights, {name}")

    def _replace_teacher(self, student: SelfDistillation) -> None:
        """Make the student that was promoted in the previous round the teacher, if there is one."""
        previous = self.state.history[-1]
        if previous["promoted"]:
            best = cast(EvaluationRecord, previous["student"])  # only a student with an accuracy is promoted
            accuracy = cast(float, best["accuracy"])
            folder = self._folder / previous["folder"]
            self.state.teacher = teachers.promoted_teacher(folder, student.encoder, accuracy)

    def on_validation_end(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        """Save the student if it is the best of the round so far."""
        if not self._active(trainer) or trainer.sanity_checking:
            return
        evaluation = _student(pl_module).evaluations["validation"]
        if not self.state.improves(evaluation.accuracy):
            return
        name = f"{STUDENTS}/round_{self.state.current}_step_{trainer.global_step}.safetensors"
        self._save(trainer, _student(pl_module), name)
        # Earlier students stay until the round ends: a killed fit resumes with the one named in its checkpoint.
        record = evaluation_record(evaluation, epoch=trainer.current_epoch, step=trainer.global_step)
        self.state.student = {"file": name, **record}

    def on_train_epoch_end(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        """After the last epoch of a round, promote its best student if it beats the teacher."""
        if not self._active(trainer) or (trainer.current_epoch + 1) % self._epochs:
            return
        student = self.state.student
        record = self.state.close()
        if record["promoted"] and student:
            record["folder"] = f"round_{record['round']}"
            if trainer.is_global_zero:
                weights = read_weights(self._folder / student["file"])
                teachers.promote(self._folder / record["folder"], _student(pl_module), weights, record)
            trainer.strategy.barrier()
        rank_zero_info(_summary(record))
        self._check_patience(trainer)

    def on_fit_end(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        """Remove files that only a resumed fit needs."""
        if self._active(trainer) and self.state.closed:
            self._remove_students(trainer)

    def state_dict(self) -> dict[str, Any]:
        """Return the state of the rounds, their folder and their length in epochs."""
        return {"rounds": asdict(self.state), "folder": str(self._folder.resolve()), "epochs": self._epochs}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load the state of the resumed fit; `on_train_start` checks it."""
        self.state = Rounds(**state_dict["rounds"])
        self._resumed = state_dict

    def recorded(self) -> RecordFields:
        """Return the history of the rounds, for run.json."""
        return {"rounds": self.state.history}

    def _active(self, trainer: L.Trainer) -> bool:
        return trainer.state.fn == TrainerFn.FITTING and not undeclared(trainer).fast_dev_run

    def _remove_students(self, trainer: L.Trainer) -> None:
        if trainer.is_global_zero:
            shutil.rmtree(self._folder / STUDENTS, ignore_errors=True)

    def _save(self, trainer: L.Trainer, student: SelfDistillation, name: str) -> None:
        weights = trained_weights(student.encoder)  # a collective call if weights are sharded
        if trainer.is_global_zero:
            with atomic_path(self._folder / name) as temporary:
                save_file(weights, temporary)
        trainer.strategy.barrier()

    def _teach(self, trainer: L.Trainer, student: SelfDistillation) -> None:
        teacher = self.state.teacher
        if teacher is not None:
            folder = self._folder / teacher["name"]
            student.teacher = teachers.teacher_embeddings(teacher, folder, trainer, student, self.embedding_dtype)

    def _check_patience(self, trainer: L.Trainer) -> None:
        if self.state.without >= self.patience and self.state.current + 1 < self.rounds:
            rank_zero_info(f"consecutive rounds without a promotion: {self.state.without}; the fit ends")
            trainer.should_stop = True


def _student(pl_module: L.LightningModule) -> SelfDistillation:
    return cast(SelfDistillation, pl_module)  # checked in setup
