"""Overlays of a system: which there are, what they set, and which options they can't go with."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from glob import escape
from pathlib import Path
from typing import Any

import yaml

from narrlit.commands.fusion_settings import is_fusion_settings
from narrlit.commands.training import find_config, packaged_configs, packaged_name, packaged_names
from narrlit.errors import OptionError


@dataclass(frozen=True)
class Overlay:
    """One overlay file.

    Attributes:
        name: of its row: the file's name, without the system's before it.
        path: the file.
        settings: what it sets, by the option's name without `init_args`, such as `model.mask`.
    """

    name: str
    path: str
    settings: dict[str, Any]


def find_overlays(fit: Sequence[str], named: str | None) -> list[Overlay]:
    """The overlays of an ablation.

    Args:
        fit: options of `narrlit fit`, whose first --config is the system.
        named: files or patterns with a comma between, here or in the package; None: ablations/SYSTEM_*.yaml, without
            those of a system that comes with the package and has a longer name.

    Raises:
        OptionError: if there is none, one is broken or no overlay, or two have the same name.
    """
    stem = Path(_first_config(fit)).stem
    parts = [part.strip() for part in named.split(",")] if named else [f"configs/ablations/{escape(stem)}_*.yaml"]
    overlays = [overlay for part in parts for overlay in _overlays(part, stem, given=named is not None)]
    found = overlays if named else [overlay for overlay in overlays if _system_of(overlay.path, stem) == stem]
    if not found:
        raise OptionError(f"there is no overlay of {stem} among {', '.join(parts)}: name overlays by --ablations")
    names = ["full", *(overlay.name for overlay in found)]
    for overlay in found:
        if names.count(overlay.name) > 1:
            raise OptionError(f"--ablations {overlay.path}: there are two rows {overlay.name}; rename the file")
    return found


def _first_config(fit: Sequence[str]) -> str:
    for place, argument in enumerate(fit):
        flag, equals, value = argument.partition("=")
        if flag in ("--config", "-c") and (equals or place + 1 < len(fit)):
            return value if equals else fit[place + 1]
    raise OptionError("give --config FILE, the system whose ablations are compared")


def _overlays(part: str, stem: str, given: bool) -> list[Overlay]:
    """The overlays of a file or a pattern; files of fusion settings, which are none, are left out of a pattern's."""
    if not any(sign in part for sign in "*?["):
        path = find_config(part, "--ablations")
        content = _read(path)
        if is_fusion_settings(content):
            raise OptionError(f"--ablations {path}: it has settings of narrlit fuse, and none of a fit; leave it out")
        return [_overlay(path, content, stem)]
    contents = {path: _read(path) for path in _matching(part, given)}
    return [_overlay(path, content, stem) for path, content in contents.items() if not is_fusion_settings(content)]


def _system_of(path: str, stem: str) -> str:
    """The system that a file's name begins with: of `stem` and those of the package that fit, the longest."""
    systems = [Path(name).stem for name in packaged_names() if Path(name).parent == Path()]
    return max((name for name in (stem, *systems) if Path(path).stem.startswith(f"{name}_")), key=len)


def _matching(part: str, given: bool) -> list[str]:
    path = Path(part)
    found = list(Path(path.anchor).glob(str(path.relative_to(path.anchor))))
    if not found and not path.is_absolute():
        found = list(packaged_configs().glob(str(packaged_name(part))))
    if not found:
        what = f"--ablations {part}: no such file" if given else f"there is no {part}: name overlays by --ablations"
        own = [name for name in packaged_names("ablations") if not is_fusion_settings(_read(find_config(name)))]
        raise OptionError(f"{what}; with narrlit come {', '.join(own)}")
    return sorted(map(str, found))


def _read(path: str) -> dict[str, Any]:
    try:
        content = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise OptionError(f"--ablations {path}: it is no YAML ({error})") from error
    if not isinstance(content, dict) or not content:
        raise OptionError(f"--ablations {path}: it sets nothing; a mapping of options is needed")
    return content


def _overlay(path: str, content: dict[str, Any], stem: str) -> Overlay:
    name = Path(path).stem
    return Overlay(name.removeprefix(f"{stem}_") or name, path, dict(_leaves(content)))


def _leaves(content: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Everything that is set, by its option's name without `init_args`; a list is one setting.

    >>> dict(_leaves({"model": {"class_path": "Triplet", "init_args": {"margin": 0.1}}, "seed_everything": 1}))
    {'model.class_path': 'Triplet', 'model.margin': 0.1, 'seed_everything': 1}
    """
    if not isinstance(content, dict):
        yield name, content
        return
    for key, value in content.items():
        yield from _leaves(value, name if key == "init_args" else f"{name}.{key}".lstrip("."))


def overruled(fit: Sequence[str], overlay: Overlay) -> list[str]:
    """What an overlay sets though an option does, too: in its row the overlay wins. A sentence for each.

    Options beneath what an overlay replaces, such as `trainer.callbacks.rounds` where it has no callbacks, are of the
    other rows; the logger's are of none, since every row has its own.
    """
    told = []
    for option, names in _options(fit):
        for name in names:
            # `--model Triplet` is short for `--model.class_path Triplet`.
            same = next((leaf for leaf in (name, f"{name}.class_path") if leaf in overlay.settings), None)
            if same is not None and not same.startswith("trainer.logger"):
                told.append(f"{overlay.name}: {same} is {overlay.settings[same]} there, whatever {option} says")
    return told


def _options(fit: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """Every option but --config as it was typed, with the names of all that it sets.

    >>> list(_options(["--config", "c.yaml", "--trainer.callbacks+=Timer", "--model.init_args.mask", "true"]))
    [('--trainer.callbacks', ['trainer.callbacks']), ('--model.init_args.mask', ['model.mask'])]
    >>> list(_options(["--model.encoder", "{max_length: 8, lora: null}"]))
    [('--model.encoder', ['model.encoder.max_length', 'model.encoder.lora'])]
    """
    for place, argument in enumerate(fit):
        flag, equals, value = argument.partition("=")
        if not flag.startswith("--") or flag == "--config":
            continue
        option = flag.removesuffix("+")
        given = value if equals else next(iter(fit[place + 1 : place + 2]), "")
        name = ".".join(part for part in option.removeprefix("--").split(".") if part != "init_args")
        yield option, [leaf for leaf, _ in _leaves(_mapping(given), name)]


def _mapping(value: str) -> Any:
    """An option's value as data, where it is a mapping, which sets several things at once."""
    try:
        return yaml.safe_load(value)
    except yaml.YAMLError:
        return value
