"""narrlit demo: train, evaluate, compare, export and submit on synthetic stories, command by command."""

import shlex
import time
from pathlib import Path
from typing import Annotated

import narrlit
from narrlit.cli import main
from narrlit.console import say
from narrlit.errors import NarrlitError
from narrlit.files import Output, check_writable


def demo(*, out: Annotated[str, Output(continued=True)] = "runs/demo") -> None:
    """Run the whole workflow on synthetic stories: evaluate a baseline, train, export, embed, submit, compare, report.

    Args:
        out: folder for all results; must be new or empty.
    """
    check_writable(out, folder=True)
    start = time.monotonic()
    folder = Path(out)
    world, run, model = str(folder / "storyworld"), str(folder / "quickstart"), str(folder / "model")
    archive, embeddings = str(folder / "submission.zip"), str(folder / "embeddings.npy")
    page = str(folder / "report.html")
    validation, test, stories = f"{world}/validation.jsonl", f"{world}/test.jsonl", f"{world}/test_stories.jsonl"
    _run("data", "storyworld", "--out", world, "--test", "50")
    _run("evaluate", validation, "--baseline", "jaccard")
    logger = "--trainer.logger.init_args"
    _run("fit", "--config", "configs/quickstart.yaml", f"{logger}.save_dir", out, f"{logger}.version", "")
    _run("export", run, "--out", model)
    _run("embed", stories, "--model", model, "--out", embeddings)
    difference = narrlit.check_export(model, stories)
    tracks = ("--track-a", test, "--track-b", stories)
    _run("submit", "--model", model, *tracks, "--out", archive)
    _run("submit", "--check", archive, *tracks)
    _run("compare", validation, "--models", f"minilm,{run}", "--baselines", "all", "--out", f"{out}/compare")
    # PCA, because UMAP's first call compiles for a minute.
    _run("report", run, "minilm", "--triples", validation, "--projection", "pca", "--out", page)
    print(f"embeddings of narrlit and sentence-transformers differ by at most {difference:.1e}")
    print(f"stories {world}, run {run} (tensorboard --logdir {shlex.quote(out)}), model {model}, submission {archive}")
    print(f"report: {page}")
    print(f"{time.monotonic() - start:.0f} seconds in all")


def _run(*words: str) -> None:
    say(f"\n$ narrlit {shlex.join(words)}")
    if main(list(words)) != 0:
        raise NarrlitError("demo_stopped")
