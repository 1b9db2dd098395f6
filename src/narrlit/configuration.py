"""Config files: where they are, and a reader that refuses what YAML would silently accept."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from narrlit.errors import OptionError

SEARCH_SPACES = "search_spaces"
"""Folder of search spaces among the packaged configs; they are no configs of `narrlit fit`."""
MAX_DEPTH = 50
MAX_NODES = 20_000
LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def find_config(path: str, option: str = "--config") -> str:
    """Return the path of a config: the file itself or, where there is none, a packaged config of that name.

    Args:
        path: a file, or the name of a packaged config, with or without `configs/` before it.
        option: named in errors; `--space` looks for search spaces.

    Raises:
        OptionError: if there is no such file.
    """
    if Path(path).is_file():
        return path
    packaged = packaged_configs() / packaged_name(path)
    if packaged.is_file():
        return str(packaged)
    from difflib import get_close_matches

    names = packaged_names(SEARCH_SPACES if option == "--space" else ".")
    close = get_close_matches(packaged_name(path).as_posix(), names, n=1)
    hint = f"did you mean {close[0]}?" if close else f"packaged are {', '.join(names)}"
    raise OptionError(f"{option} {path}: no such file; {hint}")


def packaged_name(path: str) -> Path:
    """Return a config's path below the folder of packaged configs."""
    return Path(path).relative_to("configs") if Path(path).is_relative_to("configs") else Path(path)


def packaged_names(folder: str = ".") -> list[str]:
    """Names of the packaged configs in a folder and below it, search spaces apart."""
    root = packaged_configs()
    names = sorted(file.relative_to(root).as_posix() for file in (root / folder).rglob("*.yaml"))
    return names if folder == SEARCH_SPACES else [name for name in names if not name.startswith(f"{SEARCH_SPACES}/")]


def packaged_configs() -> Path:
    """Folder of the packaged configs; in a checkout, the checkout's own."""
    package = Path(__file__).parent
    installed = package / "configs"
    return installed if installed.is_dir() else package.parents[1] / "configs"


def config_files(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Find and check every `--config` of a command line.

    Returns:
        The arguments with existing paths, and these paths.

    Raises:
        OptionError: for a file that is missing or can't be read.
    """
    arguments, paths = list(arguments), []
    for position, argument in enumerate(arguments):
        flag, equals, value = argument.partition("=")
        if flag not in ("--config", "-c"):
            continue
        if equals:
            paths.append(find_config(value))
            arguments[position] = f"{flag}={paths[-1]}"
        elif position + 1 < len(arguments):
            paths.append(find_config(arguments[position + 1]))
            arguments[position + 1] = paths[-1]
    for path in paths:
        if not isinstance(read_yaml(path), dict):
            raise OptionError(f"{path}: not a config; a mapping of options is needed")
    return arguments, paths


def read_yaml(path: str | Path) -> Any:
    """Read a YAML file as plain data.

    Raises:
        OptionError: if it can't be read, is no YAML, repeats a key, or nests or expands beyond any config.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
        _check_events(str(path), text)
        return yaml.load(text, Loader=LOADER)  # noqa: S506 (a safe loader)
    except OSError as error:
        raise OptionError(f"{path}: {error.strerror}") from error
    except (yaml.YAMLError, ValueError) as error:
        mark = getattr(error, "problem_mark", None)
        line = f":{mark.line + 1}" if mark else ""
        problem = (
            "not UTF-8 text" if isinstance(error, UnicodeDecodeError) else getattr(error, "problem", None) or error
        )
        raise OptionError(f"{path}{line}: {problem}") from error


def _check_events(path: str, text: str) -> None:
    """Check keys, nesting and size before anything is built: loaders recurse, and aliases multiply."""
    mappings: list[tuple[set[str], bool] | None] = []  # of each open node: its keys and whether a key comes next
    opened: list[tuple[str | None, int]] = []  # of each open node: its anchor and the number of nodes before it
    sizes: dict[str, int] = {}
    nodes = 0
    for event in yaml.parse(text, Loader=LOADER):
        where = f"{path}:{event.start_mark.line + 1 if event.start_mark else 0}"
        if isinstance(event, yaml.NodeEvent):
            nodes += sizes.get(event.anchor or "", 1) if isinstance(event, yaml.AliasEvent) else 1
            top = mappings[-1] if mappings else None
            if top is not None:
                keys, key_next = top
                if key_next and isinstance(event, yaml.ScalarEvent):
                    if event.value in keys:
                        raise OptionError(f"{where}: key {event.value!r} is repeated; keep one")
                    keys.add(event.value)
                mappings[-1] = (keys, not key_next)
        if isinstance(event, yaml.CollectionStartEvent):
            mappings.append((set(), True) if isinstance(event, yaml.MappingStartEvent) else None)
            opened.append((event.anchor, nodes))
        elif isinstance(event, yaml.CollectionEndEvent):
            mappings.pop()
            anchor, before = opened.pop()
            if anchor is not None:
                sizes[anchor] = nodes - before + 1
        if len(opened) > MAX_DEPTH or nodes > MAX_NODES:
            raise OptionError(f"{where}: nested more than {MAX_DEPTH} levels deep, or more than {MAX_NODES} values")
