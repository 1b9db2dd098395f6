"""narrlit.judge from Python: a scripted server, an encoder, triples in memory."""

import asyncio
import json
import math
import shutil
from dataclasses import replace
from functools import partial

import pytest
from llm_server import MODEL, question
from safetensors.torch import load_file, save_file

import narrlit
from narrlit.data.schema import Triples
from narrlit.encoding import model_loading
from narrlit.errors import OptionError
from narrlit.experiments.judging import JudgeJob
from narrlit.llm.options import LLMOptions


@pytest.fixture
def triples(world_files):
    return narrlit.read_triples(world_files / "validation.jsonl")


@pytest.fixture
def judge(llm, triples, tiny, tmp_path):
    """judge(**options): the triples, by a server that chooses A of all but the first and the last."""
    texts = triples.texts()
    silent = {texts[0][0], texts[-1][0]}

    def reply(body):
        anchor = json.loads(question(body))["anchor"]
        return "Both." if anchor in silent else json.dumps({"closer": "A"})

    llm.reply_of = reply
    encoder = narrlit.load(tiny())

    def run(rows=triples, **options):
        model = LLMOptions(base_url=llm.url, llm_model=MODEL, retries=0, seed=options.pop("seed", 42))
        return narrlit.judge(rows, encoder, llm=model, out=tmp_path / "a.jsonl", **options)

    return run


def test_judgements_fall_back_where_the_reply_has_no_choice(judge, triples, tmp_path, tiny):
    judged = judge()
    near = [bool(a > b) for a, b in narrlit.load(tiny()).score(triples)]
    assert judged.answers == [near[0], *[True] * 7, near[-1]]

    right = [answer == triple.a_is_closer for answer, triple in zip(judged.answers, triples, strict=True)]
    assert judged.summary.n == 9
    assert judged.summary.correct == sum(right)
    assert judged.accuracy == sum(right) / 9
    assert judged.failed == []
    assert judged.failures == ""
    assert judged.figures.fallbacks.count == 2

    table = judged.table()
    assert table["text_a_is_closer"].tolist() == judged.answers
    assert table["label"].tolist() == [triple.a_is_closer for triple in triples]
    assert table["fallback"].notna().tolist() == [True, *[False] * 7, True]
    assert (tmp_path / "a.jsonl.report.md").read_text() == f"{judged}\n"

    judged.write(tmp_path / "b.jsonl")
    assert (tmp_path / "b.jsonl").read_bytes() == (tmp_path / "a.jsonl").read_bytes()


def test_a_call_resumes_and_other_settings_need_overwrite(judge, triples, llm):
    judge()
    assert len(llm.bodies) == 9

    judge()
    assert len(llm.bodies) == 11  # the two without a choice

    bare = Triples(triples.stories, [replace(triple, a_is_closer=None) for triple in triples])
    judged = judge(bare)  # labels decide no answer
    assert len(llm.bodies) == 13
    assert math.isnan(judged.accuracy)
    assert judged.summary.n == 0
    assert str(judged).startswith("9 triples without labels.")
    with pytest.raises(OptionError, match=r"made with other settings: give `overwrite`"):
        judge(seed=7)
    with pytest.raises(OptionError, match=r"made with other settings"):
        judge(Triples(triples.stories, triples.rows[::-1]))
    assert len(llm.bodies) == 13

    judge(swap=True, overwrite=True)
    assert len(llm.bodies) == 13 + 2 + 9  # the other order is new


def test_other_weights_of_the_same_name_are_other_settings(llm, triples, tiny, tmp_path):
    folder = tmp_path / "model"
    shutil.copytree(tiny(), folder)
    model = LLMOptions(base_url=llm.url, llm_model=MODEL, retries=0)
    call = partial(narrlit.judge, triples, folder, llm=model, out=tmp_path / "a.jsonl")
    call()
    call()
    weights = load_file(folder / "model.safetensors")
    save_file({name: -weight for name, weight in weights.items()}, folder / "model.safetensors", {"format": "pt"})

    with pytest.raises(OptionError, match="made with other settings: give `overwrite`"):
        call()

    call(overwrite=True)


def test_the_revision_of_a_hub_model_is_known_once_it_is_loaded(monkeypatch, triples, tiny, tmp_path):
    """Its files are downloaded by the first call: the second must have the same digest."""
    encoder = narrlit.load(tiny())
    downloaded = []
    identities = {False: (encoder.name, None), True: (encoder.name, "commit")}
    for module in ("narrlit.encoding.story_encoder", "narrlit.experiments.judging"):
        monkeypatch.setattr(f"{module}.model_identity", lambda name: identities[bool(downloaded)])
    load = model_loading.load_module
    monkeypatch.setattr(model_loading, "load_module", lambda *a: downloaded.append(a) or load(*a))
    model = LLMOptions(base_url="http://localhost:1/v1", llm_model=MODEL)
    first, second = (JudgeJob(triples, narrlit.load(tiny()), model, None, False).digest for _ in range(2))

    assert first == second
    assert len(downloaded) == 1


def test_requests_that_fail_are_listed(judge, llm):
    llm.modes = iter([None, "500", None, "500"])
    judged = judge()
    assert len(judged.failed) == 2
    assert judged.failures.startswith("2 of 9 triples fell back (")
    assert judged.failures.endswith("): 2 request failed: HTTP 500")
    assert judge().failed == []


def test_it_works_in_a_notebook_with_a_running_event_loop(judge):
    async def cell():
        return judge()

    assert len(asyncio.run(cell()).answers) == 9


def test_mistakes_name_parameters(judge, triples, tmp_path):
    with pytest.raises(OptionError, match=r"a.csv: must end in .jsonl, or in .zip"):
        narrlit.judge(triples, llm=LLMOptions(), out=tmp_path / "a.csv")
    with pytest.raises(OptionError, match="`labels` need a file of triples"):
        judge(labels="l.jsonl")
    with pytest.raises(OptionError, match="`temperature=3`: must be between 0 and 2"):
        LLMOptions(temperature=3)
