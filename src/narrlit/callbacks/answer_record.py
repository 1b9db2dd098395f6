"""validation_answers.json: which triples each look at the validation triples answered wrongly, for paired tests."""

import json
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path
from typing import Any

import lightning as L
import torch
from lightning.pytorch.callbacks import Callback
from torch import Tensor

from narrlit.data.records import Triple
from narrlit.distributed import gather
from narrlit.files import atomic_path
from narrlit.text.joined import split

ANSWERS = "validation_answers.json"


class AnswerRecord(Callback):
    """Keeps validation_answers.json in the run's directory, whole at any moment.

    It holds the digest of the triples, and of every look its epoch, its step and the places of the triples that were
    answered wrongly, in ascending order; null where a score was NaN, and there are no answers.
    """

    def __init__(self) -> None:
        self._looks: list[dict[str, Any]] = []
        self._wrong: list[Tensor] = []
        self._triples = ""
        self._folder: Path | None = None

    def on_fit_start(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        """Find out where the file goes, and of which triples it is."""
        # Asked once, by every process: an exception in one of them must not wait for the others.
        log_dir = trainer.log_dir
        self._folder = Path(log_dir) if log_dir and not trainer.fast_dev_run else None  # type: ignore[attr-defined]
        data: Any = trainer.datamodule  # type: ignore[attr-defined]
        self._triples = triples_digest(data.triples_as_read("validation"))

    def on_validation_start(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        """Forget the look before."""
        self._wrong = []

    def on_validation_batch_end(
        self, trainer: L.Trainer, pl_module: L.LightningModule, outputs: Any, *_: Any, **__: Any
    ) -> None:
        """Keep the batch's wrong answers."""
        self._wrong.append(outputs["wrong"])

    def on_validation_end(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        """Note the look's wrong answers, those of every process."""
        if self._folder is None or trainer.sanity_checking or not self._wrong:
            return
        places = gather(torch.cat(self._wrong)).tolist()
        found: Any = pl_module.summaries["validation"]  # type: ignore[index]
        wrong = sorted(place for place in places if place >= 0) if found.known else None
        self._looks.append({"epoch": trainer.current_epoch, "step": trainer.global_step, "wrong": wrong})
        if trainer.is_global_zero:
            with atomic_path(self._folder / ANSWERS) as temporary:
                text = json.dumps({"triples": self._triples, "looks": self._looks})
                temporary.write_text(text + "\n", encoding="utf-8")

    def state_dict(self) -> dict[str, Any]:
        """The looks so far, for a fit that goes on in another directory."""
        return {"looks": self._looks}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over the looks before."""
        self._looks = list(state_dict["looks"])


def triples_digest(triples: Iterable[Triple]) -> str:
    """SHA-256, in hex, of the triples' texts and labels in their order, whatever views stand beside the texts."""
    told = [(*(split(text)[0] for text in triple.texts), triple.a_is_closer) for triple in triples]
    return sha256(json.dumps(told).encode()).hexdigest()
