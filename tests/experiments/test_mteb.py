"""Tasks of MTEB over own files and over official data, models as MTEB sees them, and the command."""

import importlib.util
import json
import socket

import numpy as np
import pandas as pd
import pytest
from json_files import read_json, write_json_lines
from refusals import refused
from results import check_result
from scipy.stats import spearmanr

from narrlit.data.readers import read_triples
from narrlit.data.schema import StoryTable, Triple, Triples
from narrlit.encoding.loading import load
from narrlit.experiments.evaluation import evaluate
from narrlit.experiments.mteb_evaluation import evaluate_mteb
from narrlit.experiments.mteb_model import mteb_model
from narrlit.experiments.mteb_tasks import SHARED_TASK, TaskDescription, triples_task, versions_task
from narrlit.experiments.retrieval import retrieval
from narrlit.library.collection import Collection
from narrlit.models.config import EncoderConfig, Prompts
from narrlit.models.encoder import Encoder
from narrlit.results import Result

# MTEB takes about ten seconds to import.
pytestmark = [
    pytest.mark.skipif(
        importlib.util.find_spec("mteb") is None, reason="mteb is not installed: pip install 'narrlit[mteb]'"
    ),
    pytest.mark.long,
]

VERSIONS = pd.DataFrame(
    {
        "text": [
            "A wolf eats a girl in a red hood.",
            "A hare loses a race to a hedgehog.",
            "A bank lowers its rates.",
            "A girl in red meets a wolf, who eats her.",
            "A fox wins a race against a snail by a trick.",
            "In the wood, a wolf deceives a child and her grandmother.",
        ],
        "kind": ["wolf", "race", None, "wolf", "race", "wolf"],
    }
)
PAIRS = [
    {"sentence1": "A knight seeks a grail.", "sentence2": "A knight looks for a cup.", "score": 4.5},
    {"sentence1": "A king falls ill.", "sentence2": "Rates rise in spring.", "score": 0.2},
    {"sentence1": "A hare sleeps.", "sentence2": "A hare runs a race.", "score": 2.0},
    {"sentence1": "A ship sinks.", "sentence2": "A boat goes down in a storm.", "score": 4.0},
]


@pytest.fixture
def encoder(tiny):
    return load(tiny())


@pytest.fixture
def sts(tmp_path):
    """Folder of data sets that contains STS12, in the format of MTEB."""
    folder = tmp_path / "datasets" / "STS12"
    folder.mkdir(parents=True)
    write_json_lines(folder / "test.jsonl", PAIRS)
    return folder.parent


def main_scores(result):
    """Scores of the only split and subset of the first task."""
    (scores,) = result.results[0].scores["test"]
    return scores


def test_triples_have_the_accuracy_of_evaluate(encoder, world_files):
    path = world_files / "validation.jsonl"
    expected = evaluate(path, encoder).estimate()
    assert 0 < expected.value < 1
    assert expected.value != 0.5

    score = evaluate_mteb([triples_task(path)], encoder).estimate(metric="accuracy", subset="task: StoryTriples")

    assert score.n == expected.n == 9
    assert score.value == pytest.approx(expected.value, abs=1e-5)  # MTEB rounds to five decimals


@pytest.mark.parametrize("a_is_closer", [True, False])
def test_a_tie_counts_as_b(encoder, a_is_closer):
    table = StoryTable.of(["A knight seeks a grail.", "A diver seeks a pearl."])
    tied = Triples(table, [Triple(0, 1, 1, a_is_closer)] * 2)

    (score,) = evaluate_mteb([triples_task(tied)], encoder).figures["value"]

    assert score == evaluate(tied, encoder).estimate().value == float(not a_is_closer)


def test_versions_have_the_ranks_of_retrieval(encoder):
    collection = Collection.of(VERSIONS, encoder, measure="cosine")
    expected = retrieval(collection, same="kind", measures=["cosine"], baseline=None)
    recall, mrr, ndcg = (expected.estimate("cosine", metric).value for metric in ("recall@1", "MRR", "nDCG@10"))

    result = evaluate_mteb([versions_task(VERSIONS, "kind")], encoder)

    assert result.figures["n"].tolist() == [len(expected.answers)] == [5]
    scores = main_scores(result)
    # MTEB rounds to five decimals.
    assert scores["mrr_at_1000"] == pytest.approx(mrr, abs=1e-5)
    assert scores["hit_rate_at_1"] == pytest.approx(recall, abs=1e-5)
    assert scores["main_score"] == scores["ndcg_at_10"] == pytest.approx(ndcg, abs=1e-5)


def test_versions_need_a_column_with_a_shared_value():
    with refused("unknown_column", option="same", column="kin", near="kind", known=["kind"]):
        versions_task(VERSIONS, "kin")
    with refused("no_same_value", option="same", column="kind"):
        versions_task(VERSIONS.assign(kind=range(6)), "kind")


def test_an_official_task_runs_on_data_of_a_folder(encoder, sts):
    first, second = (encoder.embed([pair[name] for pair in PAIRS]) for name in ("sentence1", "sentence2"))
    cosines = (first * second).sum(1) / np.linalg.norm(first, axis=1) / np.linalg.norm(second, axis=1)

    score = evaluate_mteb(["STS12"], encoder, datasets=sts).estimate(metric="cosine_spearman", subset="task: STS12")

    assert score.n == 4
    expected = spearmanr(cosines, [pair["score"] for pair in PAIRS]).statistic
    assert score.value == pytest.approx(expected, abs=1e-9)  # ranks are whole numbers


def test_nothing_is_downloaded_unless_it_is_allowed(encoder, monkeypatch, tmp_path):
    from datasets import config
    from huggingface_hub import constants

    def connect(*_):
        raise AssertionError("the network was reached")

    monkeypatch.setattr(config, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(config, "HF_DATASETS_CACHE", tmp_path)
    monkeypatch.setattr(socket.socket, "connect", connect)
    monkeypatch.setattr(socket, "getaddrinfo", connect)

    with refused("missing_data_of_task", task="STS12", path="mteb/sts12-sts"):
        evaluate_mteb(["STS12"], encoder)

    assert (config.HF_HUB_OFFLINE, constants.HF_HUB_OFFLINE) == (False, False)


def test_tasks_that_cannot_run_are_refused(encoder, tmp_path, world_files):
    with refused("unknown_task", task="STS1") as caught:
        evaluate_mteb(["STS1"], encoder)
    assert caught.value.values["near"].startswith("STS1")
    with refused("task_of_modalities", task="CIFAR10"):
        evaluate_mteb(["CIFAR10"], encoder)
    with refused("no_folder_of_task", folder="STS12", source="mteb/sts12-sts"):
        evaluate_mteb(["STS12"], encoder, datasets=tmp_path)
    with refused("empty_list", option="tasks"):
        evaluate_mteb([], encoder)
    task = triples_task(world_files / "validation.jsonl")
    with refused("task_twice", task="StoryTriples"):
        evaluate_mteb([task, task], encoder)


def test_the_shared_task_has_the_metadata_that_mteb_requires(world_files):
    triples = read_triples(world_files / "validation.jsonl")
    metadata = triples_task(triples, SHARED_TASK).metadata

    assert (metadata.name, metadata.type, metadata.main_score) == ("SemEval2026Task4", "Reranking", "accuracy")
    assert "{hatzel2026semeval," in metadata.bibtex_citation
    missing = [name for name in type(metadata).model_fields if getattr(metadata, name) is None]
    assert set(missing) <= {"prompt", "date", "adapted_from", "contributed_by", "superseded_by"}

    dated = TaskDescription("Dated", "Dated triples.", dates=("2001-01-15", "2025-06-30"), domains=("Fiction",))
    assert triples_task(triples, dated).metadata.date == dated.dates
    with refused("broken_description_of_task", path="Wrong"):
        triples_task(triples, TaskDescription("Wrong", "Wrong domain.", domains=("Tales",)))


def test_mteb_reads_the_results_again(encoder, world_files, tmp_path):
    import mteb

    result = evaluate_mteb([triples_task(world_files / "validation.jsonl")], encoder)
    check_result(result, tmp_path / "out")

    again = mteb.TaskResult.from_disk(tmp_path / "out" / "StoryTriples.json")
    assert again.task_name == "StoryTriples"
    assert again.get_score() == pytest.approx(result.figures["value"][0], abs=1e-6)  # written with six decimals
    meta = read_json(tmp_path / "out" / "model_meta.json")
    assert meta["name"] == result.settings["model"]
    assert meta["revision"] == encoder.fingerprint[:12]
    assert encoder.name not in json.dumps(meta)  # a path


def test_metadata_describe_the_model_and_load_it_again(tiny):
    encoder = load(tiny(), long="truncate", max_length=40)
    meta = mteb_model(encoder, name="tales/tiny").mteb_model_meta

    weights = list(encoder.module.parameters())
    assert meta.name == "tales/tiny"
    assert meta.n_parameters == sum(weight.numel() for weight in weights)
    assert (meta.embed_dim, meta.max_tokens) == (encoder.dimension, encoder.facts.max_length)
    assert meta.training_datasets is None
    assert meta.license is None

    model = meta.load_model()
    texts = ["A knight seeks a grail. " * 20, "A diver seeks a pearl."]
    options = {"task_metadata": None, "hf_split": "test", "hf_subset": "default"}
    assert np.array_equal(model.encode([{"text": texts}], **options), encoder.embed(texts))

    assert mteb_model("narrlit-mini").mteb_model_meta.license == "cc-by-sa-4.0"
    with refused("name_for_mteb", name="tiny"):
        mteb_model(encoder, name="tiny")


def test_queries_are_read_as_anchors_and_documents_as_candidates(tiny):
    from mteb.types import PromptType

    prompts = Prompts(anchor="query: ", candidate="passage: ")
    encoder = load(Encoder(EncoderConfig(tiny(), prompts=prompts)).eval())
    model = mteb_model(encoder)
    options = {"task_metadata": None, "hf_split": "test", "hf_subset": "default"}
    batches = [{"text": ["A knight seeks a grail."]}]

    query = model.encode(batches, prompt_type=PromptType.query, **options)
    document = model.encode(batches, prompt_type=PromptType.document, **options)

    assert np.array_equal(query, encoder.embed(batches[0]["text"], "anchor"))
    assert np.array_equal(document, encoder.embed(batches[0]["text"], "candidate"))
    assert not np.array_equal(query, document)


def test_the_command_prints_a_table_and_writes_results_of_mteb(narrlit, tiny, world_files, sts, tmp_path):
    words = ["evaluate", world_files / "validation.jsonl", "--model", tiny(), "--datasets", sts, "--out", "out"]
    found = narrlit(*words, "--mteb", "SemEval2026Task4,STS12")

    assert found.code == 0, found.err
    result = Result.read(tmp_path / "out" / "mteb.json")
    assert found.out == f"{result}\n"
    scores = [["task: SemEval2026Task4", "accuracy"], ["task: STS12", "cosine_spearman"]]
    assert result.figures[["subset", "metric"]].to_numpy().tolist() == scores
    assert {"SemEval2026Task4.json", "STS12.json", "model_meta.json"} < {
        path.name for path in (tmp_path / "out").iterdir()
    }

    again = narrlit(*words, "--mteb", "SemEval2026Task4,STS12")
    assert again.code == 2
    assert "give --overwrite" in again.err

    record = json.loads(narrlit(*words[:-2], "--mteb", "STS12,StoryTriples", "--json").out)
    assert [row["subset"] for row in record["figures"]] == ["task: STS12", "task: StoryTriples"]
