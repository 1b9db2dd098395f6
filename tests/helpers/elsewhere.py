"""Exported folders used by sentence-transformers alone, in a process that can't import this package."""

import json
import os
import subprocess
import sys

import numpy as np

_PROGRAM = """
import json, sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "narrlit":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
import numpy as np
from sentence_transformers import SentenceTransformer

for folder, texts, program in json.loads(sys.argv[1]):
    model = SentenceTransformer(folder, trust_remote_code=True, device="cpu")
    exec(program)
    np.savez(folder + ".npz", **found)
assert "narrlit" not in sys.modules
"""


def used_elsewhere(jobs, cwd):
    """What programs leave in `found`, for each (folder, texts, program); they have these, `model`, np and json."""
    environment = {**os.environ, "HF_MODULES_CACHE": str(cwd / "modules"), "HF_HUB_OFFLINE": "1"}
    command = [sys.executable, "-c", _PROGRAM, json.dumps([[str(folder), *rest] for folder, *rest in jobs])]
    done = subprocess.run(command, check=False, cwd=cwd, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return [np.load(f"{folder}.npz") for folder, *_ in jobs]
