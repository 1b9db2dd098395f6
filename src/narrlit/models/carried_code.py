"""Sentence-transformers folders that bring the code they need."""

import json
import re
from pathlib import Path

_OWN_IMPORT = re.compile(r"^from narrlit\.((?:\w+\.)*(\w+)) import", re.MULTILINE)


def carry_code(folder: Path, module: str, name: str) -> None:
    """Make class `name` of `narrlit.models.MODULE` the only module of the model in `folder`, its code beside it.

    Copied are the module's file and all that it imports of this package, side by side.
    """
    entry = {"idx": 0, "name": "0", "path": "", "type": f"{module}.{name}"}
    (folder / "modules.json").write_text(json.dumps([entry], indent=2) + "\n", encoding="utf-8")
    package = Path(__file__).parent.parent
    needed = [f"models.{module}"]
    for place in needed:
        path = package.joinpath(*place.split(".")).with_suffix(".py")
        code = path.read_text(encoding="utf-8")
        needed += [further for further, _ in _OWN_IMPORT.findall(code) if further not in needed]
        (folder / path.name).write_text(_OWN_IMPORT.sub(r"from .\2 import", code), encoding="utf-8")
