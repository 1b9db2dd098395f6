"""An exported folder used by sentence-transformers alone, in a process that can't import this package."""

import json
import os
import subprocess
import sys

import numpy as np

_BEGINNING = """
import json, sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "narrlit":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
import numpy as np
from sentence_transformers import SentenceTransformer

folder, texts = sys.argv[1], json.loads(sys.argv[2])
model = SentenceTransformer(folder, trust_remote_code=True, device="cpu")
"""


def used_elsewhere(exported, texts, program, tmp_path):
    """What a program leaves in `found`; it has `model`, `texts`, `folder`, numpy and json."""
    environment = {**os.environ, "HF_MODULES_CACHE": str(tmp_path / "modules"), "HF_HUB_OFFLINE": "1"}
    ending = 'assert "narrlit" not in sys.modules\nnp.savez(folder + ".npz", **found)\n'
    command = [sys.executable, "-c", _BEGINNING + program + ending, str(exported), json.dumps(texts)]
    done = subprocess.run(command, check=False, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return np.load(f"{exported}.npz")
