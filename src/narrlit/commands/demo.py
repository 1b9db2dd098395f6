"""narrlit demo: train, evaluate, compare, export and submit on synthetic stories, by the commands one would type."""

import contextlib
import io
import json
import shlex
import time
from pathlib import Path
from typing import Any

import numpy as np

from narrlit.cli import main
from narrlit.console import say
from narrlit.errors import NarrlitError
from narrlit.experiments.report import accuracy_cell, table_text
from narrlit.files import check_writable

BASELINES = ("random", "longer", "jaccard", "tfidf")
LARGEST_DIFFERENCE = 1e-5


def demo(*, out: str = "runs/demo") -> None:
    """Run the whole way on synthetic stories: evaluate baselines and MiniLM, train, export, submit, compare and report.

    Args:
        out: folder for all results; must be new or empty.
    """
    check_writable(out, folder=True)
    start = time.monotonic()
    names = ("storyworld", "quickstart", "model", "submission.zip", "embeddings.npy")
    world, run, model, archive, embeddings = (str(Path(out) / name) for name in names)
    validation, test, stories = (f"{world}/{name}.jsonl" for name in ("validation", "test", "test_stories"))
    _run("storyworld", "--out", world, "--test", "50")
    systems = {name: _evaluate(validation, "--baseline", name) for name in BASELINES}
    systems["minilm, frozen"] = _evaluate(validation, "--model", "minilm")
    logger = "--trainer.logger.init_args"
    _run("fit", "--config", "configs/quickstart.yaml", f"{logger}.save_dir", out, f"{logger}.version", "")
    systems["minilm, trained"] = _evaluate(validation, "--model", run)
    _run("export", run, "--out", model)
    _run("embed", stories, "--model", model, "--out", embeddings)
    difference = _compare(model, stories, embeddings)
    tracks = ("--track-a", test, "--track-b", stories)
    _run("submit", "--model", model, *tracks, "--out", archive)
    _run("submit", "--check", archive, *tracks)
    compared = ("--models", f"minilm,{run}", "--baselines", "all", "--by", "overlap")
    _run("compare", validation, *compared, "--out", f"{out}/compare")
    page = f"{out}/report.html"
    # PCA: UMAP's first call compiles for a minute.
    _run("report", run, "minilm", "--triples", validation, "--projection", "pca", "--out", page)
    rows = [
        {"system": name, "accuracy [95 % interval]": accuracy_cell(one), "correct": one["correct"], "n": one["n"]}
        for name, one in systems.items()
    ]
    table = table_text("", rows)
    (Path(out) / "accuracies.md").write_text(table, encoding="utf-8")
    print(f"\nAccuracy on the validation triples of StoryWorld:\n\n{table}")
    print(f"embeddings of narrlit and sentence-transformers differ by at most {difference:.1e}")
    print(f"report {page}")
    print(f"stories {world}, run {run} (tensorboard --logdir {shlex.quote(out)}), model {model}, submission {archive}")
    print(f"{time.monotonic() - start:.0f} seconds in all")


def _run(*words: str) -> None:
    say(f"\n$ narrlit {shlex.join(words)}")
    if main(list(words)) != 0:
        raise NarrlitError("the demo stopped at the command above")


def _evaluate(*words: str) -> dict[str, Any]:
    with contextlib.redirect_stdout(io.StringIO()) as output:
        _run("evaluate", *words, "--json")
    entry: dict[str, Any] = json.loads(output.getvalue())
    say(f"accuracy {accuracy_cell(entry)}")
    return entry


def _compare(model: str, stories: str, embeddings: str) -> float:
    """Compare narrlit's embeddings with those that sentence-transformers computes by itself."""
    from sentence_transformers import SentenceTransformer

    texts = [json.loads(line)["text"] for line in Path(stories).read_text(encoding="utf-8").splitlines()]
    peer = SentenceTransformer(model, device="cpu", local_files_only=True)
    difference = float(np.abs(peer.encode(texts) - np.load(embeddings, allow_pickle=False)).max())
    if difference > LARGEST_DIFFERENCE:
        raise NarrlitError(f"{model}: narrlit and sentence-transformers differ by {difference:.1e}")
    return difference
