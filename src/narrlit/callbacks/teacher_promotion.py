"""Distillation rounds in one fit (HITS): a round's best student, if it beats its teacher, teaches the next round."""

import shutil
from pathlib import Path
from typing import Any, cast

import lightning as L
from lightning.pytorch.callbacks import Callback, EarlyStopping, Timer
from lightning.pytorch.trainer.states import TrainerFn
from lightning_utilities.core.rank_zero import rank_zero_info
from safetensors.torch import save_file

from narrlit.callbacks import teachers
from narrlit.callbacks.rounds import Rounds
from narrlit.errors import ModelError, OptionError
from narrlit.files import atomic_path
from narrlit.models.weights import read_weights, restore_weights, trained_weights
from narrlit.objectives.self_distillation import SelfDistillation
from narrlit.stores.vectors import StoreDtype

FIRST = "first.safetensors"
STUDENTS = "students"


class TeacherPromotion(Callback):
    """Divides a fit of R x E epochs into R rounds of E.

    Every round begins with the student's first weights, a new optimizer and a new schedule. At its end the student of
    its best look at the validation triples is promoted if its accuracy is higher than the teacher's; equal is not
    enough. A promoted student becomes a folder `rounds/round_N` in the run's directory, which `--model` accepts; at
    the next round's beginning it embeds every training story once, and these vectors are all that teaches.

    The decision falls at the end of a round's last epoch, before the checkpoint of that epoch is written; what
    follows from it happens at the next epoch's beginning, and so happens again if a killed fit goes on from there.

    Source: HITS, section 3.3 (after Born-Again Networks).
    """

    def __init__(
        self, rounds: int = 2, patience: int = 1, teacher: str | None = None, store_dtype: StoreDtype = "float32"
    ) -> None:
        """Args say how the fit is divided.

        Args:
            rounds: R; trainer.max_epochs must be a multiple of it.
            patience: the fit ends when this many rounds in succession have promoted nobody.
            teacher: of the first round, for a fit that begins with one: a folder (such as an earlier fit's
                rounds/round_0), a run, a checkpoint or a hub id. Without one the first round makes it.
            store_dtype: in which the teacher's vectors are kept.

        Raises:
            OptionError: for numbers out of range.
        """
        if rounds < 1 or patience < 1:
            raise OptionError(f"TeacherPromotion: rounds {rounds} and patience {patience} must be at least 1")
        self.rounds = rounds
        self.patience = patience
        self.teacher = teacher
        self.store_dtype: StoreDtype = store_dtype
        self.book = Rounds()
        self._epochs = 1
        self._folder = Path()
        self._resumed_from: str | None = None
        self._resumed_epochs = 1

    def setup(self, trainer: L.Trainer, pl_module: L.LightningModule, stage: str) -> None:
        """Check that the fit can be divided.

        Raises:
            OptionError: if not.
        """
        if stage != "fit" or trainer.fast_dev_run:  # type: ignore[attr-defined]
            return
        if not isinstance(pl_module, SelfDistillation):
            raise OptionError(f"TeacherPromotion needs the objective SelfDistillation, not {type(pl_module).__name__}")
        _check_length(trainer, self.rounds)
        self._epochs = (trainer.max_epochs or 0) // self.rounds
        pl_module.rounds = self.rounds

    def on_fit_start(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        """Keep the student's first weights.

        Raises:
            OptionError: if there is nothing to judge by, or no folder for the rounds.
            ModelError: if a given teacher does not fit.
        """
        if not self._active(trainer):
            return
        log_dir = trainer.log_dir
        if log_dir is None:
            raise OptionError("TeacherPromotion keeps its rounds in the run's directory: the trainer needs a logger")
        self._folder = Path(log_dir) / "rounds"
        if not trainer.limit_val_batches or not trainer.datamodule.triples["validation"]:  # type: ignore[attr-defined]
            raise OptionError("TeacherPromotion judges students by validation triples: give --data.validation FILE")
        if trainer.ckpt_path:
            return  # its state may not be there yet: on_train_start goes on
        if self._folder.is_dir() and any(self._folder.iterdir()):
            raise OptionError(
                f"{self._folder} holds the rounds of another fit: give the run another directory, remove that one, or "
                "go on from its checkpoint by --ckpt_path"
            )
        trainer.strategy.barrier()  # all have looked before one writes
        self._keep(trainer, pl_module, FIRST)
        if self.teacher is not None:
            self.book.teacher = teachers.given(
                self.teacher, self._folder / teachers.GIVEN, trainer, _student(pl_module)
            )

    def _take_over(self, trainer: L.Trainer) -> None:
        """Bring the earlier fit's folders, and see that all that is needed is there."""
        if self._resumed_from is None:
            raise OptionError(f"{trainer.ckpt_path}: this checkpoint is of a fit without TeacherPromotion; begin anew")
        if self._resumed_epochs != self._epochs:
            raise OptionError(
                f"{trainer.ckpt_path} is of a fit with rounds of {self._resumed_epochs} epochs, this one's have "
                f"{self._epochs}: change trainer.max_epochs and rounds together"
            )
        beside = Path(str(trainer.ckpt_path)).parent.parent / "rounds"
        home = next((place for place in (Path(self._resumed_from), beside) if place.is_dir()), None)
        if home is None:
            raise ModelError(f"{self._resumed_from}: the fit's rounds are gone; bring the folder back, or begin anew")
        if trainer.is_global_zero and home.resolve() != self._folder.resolve():
            shutil.copytree(home, self._folder, dirs_exist_ok=True)
        trainer.strategy.barrier()
        needed = [FIRST]
        if self.book.student and not self.book.closed:
            needed.append(self.book.student["file"])
        for name in needed:
            if not (self._folder / name).is_file():
                raise ModelError(f"{self._folder / name} is gone, and the fit needs it; bring it back, or begin anew")
        self._check_teachers()

    def on_train_start(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        """Give the student of the round its teacher; a fit that had run out of patience ends again.

        Raises:
            OptionError: if the checkpoint to go on from is of a fit without rounds, or with others.
            ModelError: if a folder that is needed is gone.
        """
        if not self._active(trainer):
            return
        if trainer.ckpt_path:
            self._take_over(trainer)
        student = _student(pl_module)
        student.round = self.book.entered
        student.kept = self.book.kept
        if self.book.closed:
            self._stop_if_patience_is_out(trainer)
        else:
            self._teach(trainer, student)

    def on_train_epoch_start(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        """Begin a round: the teacher first, then the student afresh."""
        number = trainer.current_epoch // self._epochs
        if not self._active(trainer) or number == self.book.entered:
            return
        student = _student(pl_module)
        self._check_teachers()
        ended = self.book.history[-1]
        if ended["promoted"]:
            self.book.teacher = teachers.describe(
                self._folder / ended["folder"], student.encoder, ended["student"]["accuracy"]
            )
        self._forget_students(trainer)  # the checkpoint of the round's end names none any more
        self.book.enter(number)
        student.round = number
        student.kept = self.book.kept
        self._teach(trainer, student)
        restore_weights(student.encoder, read_weights(self._folder / FIRST))
        trainer.strategy.setup_optimizers(trainer)
        rank_zero_info(f"round {number}: the student begins anew, its teacher is {self._name_of_teacher()}")

    def on_validation_end(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        """Keep the round's best student."""
        if not self._active(trainer) or trainer.sanity_checking:
            return
        found = _student(pl_module).summaries["validation"].as_dict()
        if not self.book.improves(found["accuracy"]):
            return
        name = f"{STUDENTS}/round_{self.book.entered}_step_{trainer.global_step}.safetensors"
        self._keep(trainer, pl_module, name)
        # Students before it stay until the round has ended: a killed fit goes back to the one its checkpoint names.
        self.book.student = {"file": name, "epoch": trainer.current_epoch, "step": trainer.global_step, **found}

    def on_train_epoch_end(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        """End a round with its last epoch: promote or not."""
        if not self._active(trainer) or (trainer.current_epoch + 1) % self._epochs:
            return
        student = self.book.student
        entry = self.book.close()
        if entry["promoted"] and student:
            entry["folder"] = f"round_{entry['round']}"
            weights = read_weights(self._folder / student["file"])
            if trainer.is_global_zero:
                teachers.promote(self._folder / entry["folder"], _student(pl_module), weights, entry)
            trainer.strategy.barrier()
        said = "promoted" if entry["promoted"] else "not promoted"
        rank_zero_info(f"round {entry['round']}: best student {said}, for {entry['reason']}")
        if entry["kept"]:
            shares = ", ".join(f"{name} {found['share']:.3f}" for name, found in entry["kept"].items())
            rank_zero_info(f"round {entry['round']}: share of candidates that the teacher's mask kept: {shares}")
        self._stop_if_patience_is_out(trainer)

    def on_fit_end(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        """Remove what only a fit that goes on would need."""
        if self._active(trainer) and self.book.closed:
            self._forget_students(trainer)

    def state_dict(self) -> dict[str, Any]:
        """The book, and where the folders are."""
        return {"book": self.book.as_dict(), "folder": str(self._folder.resolve()), "epochs": self._epochs}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on where an earlier fit was."""
        self.book = Rounds(**state_dict["book"])
        self._resumed_from, self._resumed_epochs = state_dict["folder"], state_dict["epochs"]

    def recorded(self) -> dict[str, Any]:
        """What the run's record says of the rounds."""
        return {"rounds": self.book.history}

    def _active(self, trainer: L.Trainer) -> bool:
        fast: bool = trainer.fast_dev_run  # type: ignore[attr-defined]
        return trainer.state.fn == TrainerFn.FITTING and not fast

    def _forget_students(self, trainer: L.Trainer) -> None:
        if trainer.is_global_zero:
            shutil.rmtree(self._folder / STUDENTS, ignore_errors=True)

    def _keep(self, trainer: L.Trainer, pl_module: L.LightningModule, name: str) -> None:
        weights = trained_weights(_student(pl_module).encoder)  # every process takes part where they are sharded
        if trainer.is_global_zero:
            with atomic_path(self._folder / name) as temporary:
                save_file(weights, temporary)
        trainer.strategy.barrier()

    def _check_teachers(self) -> None:
        for entry in self.book.history:
            if entry["promoted"]:
                teachers.check_there(self._folder / entry["folder"])

    def _teach(self, trainer: L.Trainer, student: SelfDistillation) -> None:
        teacher = self.book.teacher
        if teacher is not None:
            folder = self._folder / teacher["name"]
            student.teacher = teachers.vectors_of(teacher, folder, trainer, student, self.store_dtype)

    def _name_of_teacher(self) -> str:
        return f"{self.book.teacher['name']} ({self.book.teacher['accuracy']:.4f})" if self.book.teacher else "nobody"

    def _stop_if_patience_is_out(self, trainer: L.Trainer) -> None:
        if self.book.without >= self.patience and self.book.entered + 1 < self.rounds:
            rank_zero_info(f"no promotion in {self.book.without} rounds in succession: the fit ends")
            trainer.should_stop = True


def _check_length(trainer: L.Trainer, rounds: int) -> None:
    epochs = trainer.max_epochs or 0
    if epochs < 1 or epochs % rounds:
        raise OptionError(
            f"TeacherPromotion: {rounds} rounds do not divide trainer.max_epochs, {epochs}; give a multiple"
        )
    # A fit that ends within a round would leave it without a verdict.
    enders = [type(callback).__name__ for callback in trainer.callbacks if isinstance(callback, EarlyStopping | Timer)]  # type: ignore[attr-defined]
    if trainer.max_steps != -1 or enders:
        named = enders[0] if enders else "trainer.max_steps"
        raise OptionError(f"TeacherPromotion: rounds end with their last epoch, so leave {named} out")


def _student(pl_module: L.LightningModule) -> SelfDistillation:
    return cast(SelfDistillation, pl_module)  # setup has seen to it
