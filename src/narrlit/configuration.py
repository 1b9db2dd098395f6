"""Lookup of config files, and a YAML reader that is stricter than the standard."""

from collections.abc import Hashable
from pathlib import Path
from typing import Any

import yaml
from yaml.constructor import ConstructorError

from narrlit.errors import OptionError, nearest

SEARCH_SPACES = "search_spaces"
"""Folder of search spaces among the packaged configs; `narrlit fit` does not read them."""
MAX_ALIASES = 20


class ConfigLoader(yaml.SafeLoader):
    """SafeLoader that refuses repeated keys and an excessive number of aliases."""

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
