"""Functions that tests declare as commands."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from narrlit.errors import OptionError
from narrlit.files import Output

calls = []


@dataclass(frozen=True)
class Shared:
    """Options of several commands; shared.

    Attributes:
        trust_remote_code: run its code.
    """

    trust_remote_code: bool = False


def opened(model: str = "default", *, long: bool = False) -> str:
    """Open a model.

    Args:
        model: a folder.
        long: whole texts.
    """
    return f"opened {model} {long}"


def sample(
    action: Literal["ls", "rm"],
    folder: str | Path = "runs",
    *,
    encoder: "Encoder | None" = None,  # noqa: F821 - opened by its name
    shared: Shared = Shared(),
    out: Annotated[str | Path, Output()],
    count: int = 3,
    share: float = 0.5,
    names: Sequence[str] = (),
    seeds: Sequence[int] | None = None,
    map: Annotated[str | None, Output()] = None,
    progress: bool = False,
) -> int | None:
    """Do something.

    More about it.

    Args:
        action: what to do.
        folder: where.
        encoder: the model.
        shared: others.
        out: file to write.
        count: how many; None: all of `names`.
        share: how much.
        names: several.
        seeds: seeds.
        map: another file to write.
        progress: show it.
    """
    calls.append((action, folder, encoder, shared, out, count, share, names, seeds, map, progress))
    return 4 if action == "rm" else None


def handing_on(*fit: str, out: str, quick: bool = False) -> None:
    """Hand options on.

    Args:
        *fit: options of `narrlit fit`.
        out: folder.
        quick: less.
    """
    calls.append((fit, out, quick))


def refusing(*fit: str, k: int = 1) -> None:
    """Refuse an option.

    Args:
        *fit: others.
        k: a number.
    """
    raise OptionError("at_least", option="k", found=0, least=1)


def lacking(*fit: str) -> None:
    """Refuse a setting.

    Args:
        *fit: others.
    """
    raise OptionError("no_training_data")
