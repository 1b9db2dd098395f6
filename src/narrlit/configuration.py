"""Lookup of config files, and a YAML reader that is stricter than the standard."""

import re
from collections.abc import Hashable, Mapping, Sequence
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import yaml
from yaml.constructor import ConstructorError

from narrlit.errors import OptionError, nearest

SEARCH_SPACES = "search_spaces"
"""Folder of search spaces among the packaged configs; `narrlit fit` does not read them."""
MAX_ALIASES = 20

FitSettings = Mapping[str, Any]
"""FitSettings of a fit: nested as in a config, or by dotted names such as `data.train`."""
Configs = str | PathLike[str] | FitSettings | Sequence[str | PathLike[str] | FitSettings]
"""A config file or its content, or several, of which later ones override earlier ones."""


class ConfigLoader(yaml.SafeLoader):
    """SafeLoader that refuses repeated keys and an excessive number of aliases; `1e-5` is a number, a date is text."""

    aliases = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        """Count aliases."""
        if self.check_event(yaml.AliasEvent):
            self.aliases += 1
            if self.aliases > MAX_ALIASES:
                mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]  # types-PyYAML lacks it
                raise ConstructorError(None, None, f"more than {MAX_ALIASES} aliases", mark)
        return super().compose_node(parent, index)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        """Refuse repeated keys, of which YAML would silently use the last."""
        keys: set[str] = set()
        for key, _ in node.value:
            if key.value in keys:
                raise ConstructorError(None, None, f"key {key.value!r} is repeated; keep one", key.start_mark)
            keys.add(str(key.value))
        return super().construct_mapping(node, deep)


ConfigLoader.yaml_implicit_resolvers = {
    first: [resolver for resolver in resolvers if resolver[0] != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
ConfigLoader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile("[-+]?[0-9][0-9_]*[eE][-+]?[0-9]+$"), list("-+0123456789")
)


def read_configs(configs: Configs, settings: FitSettings | None = None) -> list[FitSettings]:
    """Read configs and settings; later ones override earlier ones, and the settings override all configs.

    Raises:
        OptionError: if a file is not a config.

    >>> read_configs("hardware/cpu.yaml", {"data.train": "a.jsonl"})
    [{'trainer': {'accelerator': 'cpu', 'devices': 1, 'precision': '32-true'}}, {'data.train': 'a.jsonl'}]
    """
    return [read_config(config) if isinstance(config, str) else config for config in list_configs(configs, settings)]


def list_configs(configs: Configs, settings: FitSettings | None = None) -> list[str | dict[str, Any]]:
    """List configs, and settings after them: files by their paths, all else as plain data.

    >>> list_configs([Path("hits.yaml")], {"data.train": Path("a.jsonl")})
    ['hits.yaml', {'data.train': 'a.jsonl'}]
    """
    several = [configs] if isinstance(configs, str | PathLike | Mapping) else [*configs]
    listed: list[str | dict[str, Any]] = [_plain(config) for config in several]
    return listed if settings is None else [*listed, _plain(settings)]


def _plain(value: object) -> Any:
    """Copy a value as it would be in a config file: paths as strings, sequences as lists."""
    if isinstance(value, Mapping):
        return {str(name): _plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(member) for member in value]
    return fspath(value) if isinstance(value, PathLike) else value


def read_config(path: str) -> dict[str, Any]:
    """Read a config: a file or, if it does not exist, a packaged config of that name.

    Raises:
        OptionError: if there is none, or it is not a mapping.
    """
    found = find_config(path)
    config = read_yaml(found)
    if not isinstance(config, dict):
        raise OptionError("not_a_config", path=found)
    return config


def find_config(path: str, option: str = "config") -> str:
    """Return the path of a config: the file itself or, if it does not exist, a packaged config of that name.

    Args:
        path: a file, or the name of a packaged config, with or without `configs/` before it.
        option: name of the option in error messages; `space` looks for search spaces.
    """
    if Path(path).is_file():
        return path
    packaged = packaged_configs() / packaged_name(path)
    if packaged.is_file():
        return str(packaged)

    names = packaged_names(SEARCH_SPACES if option == "space" else ".")
    near = nearest(packaged_name(path).as_posix(), names)
    if near:
        raise OptionError("mistyped_config", option=option, path=path, near=near)
    raise OptionError("no_such_config", option=option, path=path, known=names)


def packaged_name(path: str) -> Path:
    """Return the path of a config relative to the folder of packaged configs."""
    name = Path(path)
    return name.relative_to("configs") if name.is_relative_to("configs") else name


def packaged_names(folder: str = ".") -> list[str]:
    """List the names of the packaged configs in a folder and its subfolders, without search spaces."""
    root = packaged_configs()
    names = []
    for file in (root / folder).rglob("*.yaml"):
        path = file.relative_to(root)
        if folder == SEARCH_SPACES or path.parts[0] != SEARCH_SPACES:
            names.append(path.as_posix())
    return sorted(names)


def packaged_configs() -> Path:
    """Return the folder of packaged configs; in a git checkout, the folder `configs` there."""
    package = Path(__file__).parent
    installed = package / "configs"
    return installed if installed.is_dir() else package.parents[1] / "configs"


def read_yaml(path: str | Path) -> Any:
    """Read a YAML file as plain data.

    Raises:
        OptionError: if the file can't be read, is not valid YAML, repeats a key, or is nested or expanded excessively.
    """
    try:
        return yaml.load(Path(path).read_text(encoding="utf-8"), Loader=ConfigLoader)  # noqa: S506 (a safe loader)
    except OSError as error:
        raise OptionError("unreadable_config", path=path, reason=error.strerror) from error
    except UnicodeDecodeError as error:
        raise OptionError("unreadable_config", path=path, reason="not UTF-8 text") from error
    except RecursionError as error:
        raise OptionError("unreadable_config", path=path, reason="nested too deeply") from error
    except (yaml.YAMLError, ValueError) as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or str(error)
        if mark is None:
            raise OptionError("unreadable_config", path=path, reason=problem) from error
        raise OptionError("broken_config", path=path, line=mark.line + 1, reason=problem) from error
