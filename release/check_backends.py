"""Load exported folders with sentence-transformers' ONNX and OpenVINO backends, and compare with its torch backend.

    python release/check_backends.py

The folders are exported by this environment, which needs the extras `onnx` and `openvino`. Both backends need optimum,
which requires other releases of transformers than narrlit: each backend is installed by uv into an environment of its
own, which is deleted afterwards. `UV_TORCH_BACKEND=cpu` selects builds of torch without CUDA.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import get_args

import narrlit
from narrlit.data.tales import sample_tales
from narrlit.exporting.backends import Backend, WeightFormat
from narrlit.exporting.folders import ExportedModel

LARGEST_DIFFERENCE = 1e-5
"""Of a component of an embedding in float32, by the order of summation."""
LARGEST_CHANGE = {"float32": 1e-5, "float16": 2e-3, "int8": 0.2}
"""Of a cosine, by the number format of the weights."""
WEIGHTS: dict[Backend, WeightFormat] = {"onnx": "int8", "openvino": "float16"}
COMPARE = """
import json, sys
import numpy as np
import optimum, sentence_transformers, transformers
from sentence_transformers import SentenceTransformer

folder, backend, options, texts = json.loads(sys.argv[1])
expected = SentenceTransformer(folder, device="cpu").encode(texts)
found = SentenceTransformer(folder, device="cpu", backend=backend, model_kwargs=options).encode(texts)
print(json.dumps({
    "embedding": float(np.abs(found - expected).max()),
    "cosine": float(np.abs(found @ found.T - expected @ expected.T).max()),
    "versions": f"sentence-transformers {sentence_transformers.__version__}, transformers {transformers.__version__}",
}))
"""
"""Encode texts with a backend and with torch, and print the differences; its argument is JSON."""


def export_models(folder: Path, backend: Backend) -> list[ExportedModel]:
    """Export a model as it is, and one with post-processing, which is a further module."""
    weights = WEIGHTS[backend]
    texts = folder / "stories.jsonl"
    lines = [json.dumps({"text": tale["text"]}) for tale in sample_tales()]
    texts.write_text("\n".join(lines) + "\n", encoding="utf-8")
    whitened = narrlit.load("minilm", postprocess="whiten,truncate:16", fit_on=str(texts), device="cpu")
    return [
        narrlit.export("narrlit-mini", folder / "plain", to=backend, weights=weights),
        narrlit.export(whitened, folder / "whitened", to=backend, weights=weights),
    ]


def install(environment: Path, backend: Backend) -> Path:
    """Install a backend into a new environment, and return its Python."""
    python = environment / "bin" / "python"
    torch = f"torch=={version('torch').partition('+')[0]}"
    _uv("venv", "--python", sys.executable, str(environment))
    _uv("pip", "install", "--python", str(python), f"sentence-transformers[{backend}]", torch)
    return python


def check(python: Path, model: ExportedModel, backend: Backend) -> list[str]:
    """Compare each file of a backend with torch, print the differences, and return those that are too large."""
    problems = []
    texts = [tale["text"] for tale in sample_tales()]
    for file in model.backend_files:
        options: dict[str, object] = {"file_name": file.path}
        if backend == "openvino":
            options["ov_config"] = {"INFERENCE_PRECISION_HINT": "f32"}
        argument = json.dumps([str(model.path), backend, options, texts])
        environment = {**os.environ, "HF_HUB_OFFLINE": "1"}
        environment.pop("PYTHONPATH", None)
        done = subprocess.run(
            [str(python), "-c", COMPARE, argument], env=environment, stdout=subprocess.PIPE, text=True, check=True
        )
        result = json.loads(done.stdout.splitlines()[-1])
        line = (
            f"{result['versions']}: {model.path.name}/{file.path}: embeddings differ by at most "
            f"{result['embedding']:.0e}, cosines by {result['cosine']:.0e}"
        )
        print(line, flush=True)
        is_exact = file.weights != "float32" or result["embedding"] <= LARGEST_DIFFERENCE
        if not (is_exact and result["cosine"] <= LARGEST_CHANGE[file.weights]):
            problems.append(line)
    return problems


def main(arguments: list[str] | None = None) -> int:
    """Check both backends, or one; return 1 if a difference is too large."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("backends", nargs="*", metavar="BACKEND", help="onnx, openvino; default: both")
    options = parser.parse_args(arguments)
    problems: list[str] = []
    for backend in get_args(Backend):
        if options.backends and backend not in options.backends:
            continue
        with tempfile.TemporaryDirectory(prefix="narrlit-backends-") as folder:
            models = export_models(Path(folder), backend)
            python = install(Path(folder) / "environment", backend)
            for model in models:
                problems += check(python, model, backend)
    if problems:
        print("too large:", *problems, sep="\n")
    return 1 if problems else 0


def _uv(*words: str) -> None:
    subprocess.run([sys.executable, "-m", "uv", "--quiet", *words], check=True)


if __name__ == "__main__":
    raise SystemExit(main())
