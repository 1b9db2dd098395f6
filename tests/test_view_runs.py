"""ttda704's views in whole fits: on files, and runs that are evaluated as in training."""

import numpy as np
import pytest
from run_helpers import curves_of, fit_here, record_of
from scoring import scores_of

from narrlit.data.schema import StoryTable
from narrlit.data.storyworld import StoryWorld, synthetic_examples, synthetic_triples
from narrlit.data.writers import write_examples, write_rows, write_triples
from narrlit.models.registry import load_encoder

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """train.jsonl, validation.jsonl and views.jsonl of StoryWorld, and the validation triples with their views."""
    folder = tmp_path_factory.mktemp("views")
    world, stories = StoryWorld(0), StoryTable()
    train = world.triples(12, "train")
    write_examples(folder / "train.jsonl", synthetic_examples(train, [[] for _ in train], stories, True))
    triples = synthetic_triples(world.triples(9, "validation"), stories, True)
    write_triples(folder / "validation.jsonl", triples)
    rows = [
        {"text": s.text, "theme": s.views.theme, "course_of_action": s.views.action, "outcome": s.views.outcome}
        for s in stories
    ]
    write_rows(folder / "views.jsonl", rows)
    return folder, triples


def arguments(folder, model, out, *more):
    return [
        *("fit", "--config", "configs/ttda704.yaml", "--config", "configs/hardware/cpu.yaml"),
        *("--data.train", folder / "train.jsonl", "--data.validation", folder / "validation.jsonl"),
        *("--data.views.files", folder / "views.jsonl", "--model.encoder.model", model),
        *("--model.encoder.max_length", 96, "--model.optimization.learning_rate", 3e-4),
        *("--data.loading.batch_size", 4, "--trainer.max_epochs", 6, "--trainer.log_every_n_steps", 1),
        *("--trainer.enable_progress_bar", "false", "--trainer.logger.init_args.save_dir", out),
        *("--trainer.logger.init_args.name", "tiny", "--trainer.logger.init_args.version", "", *more),
    ]


def test_a_run_of_views_is_a_model_that_answers_as_it_did_in_training(files, tiny, tmp_path):
    folder, triples = files
    fit_here(arguments(folder, tiny(), tmp_path), tmp_path)
    curves = curves_of(tmp_path / "tiny")
    for term in ("loss", "theme", "action", "outcome", "alignment"):
        values = curves[f"train/{term}"]
        assert np.mean(values[-3:]) < np.mean(values[:3]), term

    record = record_of(tmp_path)

    assert record["flags"]["trained_on_validation"] is False
    assert record["data"]["train"]["views"]["missing"] == "refuse"

    encoder = load_encoder(str(tmp_path / "tiny"), long="truncate")
    assert encoder.reads == "views"

    scores = scores_of(encoder, triples)
    assert ((scores[:, 0] > scores[:, 1]) == (triples.labels == 1)).sum() == record["best"]["correct"]


def test_training_on_validation_stories_is_flagged_and_heads_may_be_left_out(files, tiny, tmp_path):
    folder, _ = files
    more = [
        "--data.train",
        folder / "validation.jsonl",
        "--trainer.max_epochs",
        1,
        "--data.loading.samples_per_epoch",
        4,
    ]
    more += ["--model.variant", "as_published"]

    with pytest.warns(UserWarning, match="training data contain validation triples"):
        fit_here(arguments(folder, tiny(), tmp_path, *more), tmp_path)
    assert record_of(tmp_path)["flags"]["trained_on_validation"] is True
    assert load_encoder(str(tmp_path / "tiny")).views.heads is None
