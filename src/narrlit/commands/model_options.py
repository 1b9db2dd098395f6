"""The model that a command judges with, and how models are loaded."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from narrlit.commands.devices import Device, pick_device

if TYPE_CHECKING:
    from narrlit.models.view_encoder import AnyEncoder


@dataclass(frozen=True)
class LoadOptions:
    """How models are loaded.

    Attributes:
        max_length: tokens of a text that are read; as the model says if not given.
        device: where to compute.
        trust_remote_code: run Python files that come with the model.
    """

    max_length: int | None = None
    device: Device = "auto"
    trust_remote_code: bool = False

    def load_named(self, model: str) -> "AnyEncoder":
        """The encoder of this name, on its device.

        Raises:
            ModelError: if there is no such model or it can't be loaded.
            OptionError: if the device is not there.
        """
        from narrlit.models.source import load_encoder

        device = pick_device(self.device)
        return load_encoder(model, self.trust_remote_code, self.max_length).to(device)


@dataclass(frozen=True)
class ModelOptions(LoadOptions):
    """A model, where there may be none.

    Attributes:
        model: a folder, a run directory, a checkpoint, a hub id or minilm.
    """

    model: str | None = None

    def load(self) -> "AnyEncoder":
        """The encoder, as `load_named` gives it."""
        return self.load_named(str(self.model))
