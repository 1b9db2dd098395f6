"""Generated negatives in training."""

import json
from pathlib import Path

import pytest
from llm_server import llm_server
from run_helpers import run_apart
from scripted_writer import ScriptedWriter, world_triples, write_rows_of

from narrlit.data.readers import read_examples
from narrlit.data.records import DIMENSIONS
from narrlit.data.storyworld import judged_triples
from narrlit.data.writers import write_triples

pytestmark = pytest.mark.slow


def test_generated_negatives_train_the_quickstart_of_hits(tiny, tmp_path):
    rows = write_rows_of(tmp_path / "rows.jsonl", 12)
    triples = judged_triples(world_triples(16)[12:])
    write_triples(tmp_path / "validation.jsonl", triples)

    def spoil(kind, content, attempt):  # one anchor without negatives of its outcome: a row with fewer
        told = json.dumps({"neg_outcome": "..."})
        return told if kind == "outcome" and content["anchor"] == world_triples(1)[0].anchor.text else None

    writer = ScriptedWriter(count=12, spoil=spoil)
    with llm_server(reply_of=writer.reply_of) as server:
        reached = ("--base-url", server.url, "--llm-model", "tiny")
        made = run_apart(["generate", "negatives", rows, "--out", "neg.jsonl", *reached], tmp_path)
    assert made.returncode == 1, made.stderr[-2000:]
    configs = Path(__file__).parents[1] / "configs"
    encoder, logger = "--model.init_args.encoder", "--trainer.logger.init_args"
    arguments = [
        *("fit", "--config", configs / "quickstart_hits.yaml", "--config", configs / "hardware/cpu.yaml"),
        *("--data", "FileData", "--data.train", "neg.jsonl", "--data.validation", "validation.jsonl"),
        *("--data.loading.batch_size", "4", f"{encoder}.model", tiny(), "--model.init_args.mask_margin", "0"),
        *(
            "--trainer.max_epochs",
            "2",
            f"{logger}.save_dir",
            tmp_path,
            f"{logger}.name",
            "hits",
            f"{logger}.version",
            "",
        ),
    ]
    done = run_apart(arguments, tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
    (masked,) = (line for line in done.stderr.splitlines() if "teacher's mask kept" in line)
    assert all(f"{kind} 0." in masked or f"{kind} 1." in masked for kind in DIMENSIONS)  # all of them reached the loss
    record = json.loads((tmp_path / "hits/run.json").read_text())
    assert [entry["round"] for entry in record["rounds"]] == [0, 1]
    kept = [len(e.negatives) for e in read_examples(tmp_path / "neg.jsonl").records]
    assert kept == [7, *[10] * 11]
    kinds = {n.kind for e in read_examples(tmp_path / "neg.jsonl").records for n in e.negatives}
    assert kinds == {"triple", *DIMENSIONS}
