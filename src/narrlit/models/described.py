"""Small modules kept in a folder: a JSON file that describes them and their weights as safetensors."""

import json
from abc import abstractmethod
from pathlib import Path
from typing import Any, ClassVar

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import nn
from typing_extensions import Self

from narrlit.errors import ModelError, OptionError


class Described(nn.Module):
    """A module that can be built again from plain data.

    Attributes:
        called: what it is, for messages.
        files: names of its description's and its weights' files.
    """

    called: ClassVar[str]
    files: ClassVar[tuple[str, str]]

    @abstractmethod
    def description(self) -> dict[str, Any]:
        """What `build` needs, as plain data."""

    @classmethod
    @abstractmethod
    def build(cls, described: dict[str, Any]) -> Self:
        """The module that `description` describes, with other weights."""

    def save(self, folder: Path) -> None:
        """Write description and weights into a folder that is there."""
        config, kept = self.files
        (folder / config).write_text(json.dumps(self.description(), indent=2) + "\n", encoding="utf-8")
        save_file({name: value.cpu().contiguous() for name, value in self.state_dict().items()}, folder / kept)

    @classmethod
    def load(cls, folder: Path) -> Self:
        """What `save` wrote.

        Raises:
            ModelError: naming the file that is missing, broken or does not fit.
        """
        config, kept = cls.files
        try:
            module = cls.build(json.loads((folder / config).read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError, LookupError, AttributeError, RuntimeError, OptionError) as error:
            raise ModelError(f"{folder / config}: it does not describe a {cls.called} ({_reason(error)})") from error
        try:
            module.load_state_dict(load_file(folder / kept))
        except (OSError, SafetensorError) as error:
            raise ModelError(f"{folder / kept}: it can't be read ({_reason(error)})") from error
        except RuntimeError as error:
            raise ModelError(f"{folder / kept}: its weights are not those that {config} describes") from error
        return module


def _reason(error: Exception) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)
