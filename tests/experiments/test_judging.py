"""narrlit.judge from Python: a scripted server, an encoder, triples in memory; figures against counts by hand."""

import asyncio
import json
import shutil
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from llm_server import MODEL, question
from refusals import refused
from results import check_result
from safetensors.torch import load_file, save_file

import narrlit
from narrlit.data.schema import StoryTable, Triple, Triples
from narrlit.data.splits import story_numbers
from narrlit.encoding import model_loading
from narrlit.experiments.judging import JudgeJob, judgements_of
from narrlit.llm.judge import Answer, Judgement
from narrlit.llm.options import LLMOptions
from narrlit.results import Note, estimate
from narrlit.statistics.significance import SharedStories, mcnemar_by_story

CHOICE = st.sampled_from([True, False, None])
ROWS = st.lists(st.tuples(CHOICE, CHOICE, st.sampled_from([-0.5, -0.2, 0.0, 0.1, 0.2, 0.5])), min_size=1, max_size=30)
T, F, N = True, False, None


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
    answers = [near[0], *[True] * 7, near[-1]]
    assert judged.answers["hybrid"].tolist() == answers
    assert judged.answers["label"].tolist() == [triple.a_is_closer for triple in triples]
    assert judged.answers["fallback"].notna().tolist() == [True, *[False] * 7, True]

    right = [answer == triple.a_is_closer for answer, triple in zip(answers, triples, strict=True)]
    assert judged.estimate() == estimate(right, story_numbers(triples))
    assert judged.estimate("llm", "fallbacks", "shares").value == 2 / 9
    assert judged.failed == []
    assert judged.failures == ""
    assert (tmp_path / "a.jsonl.report.md").read_text() == f"{judged}\n"
    check_result(judged, tmp_path / "result")

    judged.write_answers(tmp_path / "b.jsonl")
    for name in ("", ".rows.jsonl", ".report.json"):
        assert (tmp_path / f"b.jsonl{name}").read_bytes() == (tmp_path / f"a.jsonl{name}").read_bytes()


def test_a_call_resumes_and_other_settings_need_overwrite(judge, triples, llm, tmp_path):
    judge()
    assert len(llm.bodies) == 9

    judge()
    assert len(llm.bodies) == 11  # the two without a choice

    bare = Triples(triples.stories, [replace(triple, a_is_closer=None) for triple in triples])
    judged = judge(bare)  # labels decide no answer
    assert len(llm.bodies) == 13
    assert Note.of("unlabeled", n=9) in judged.notes
    assert set(judged.figures["metric"]) == {"fallbacks", "overrides", "shown first"}
    check_result(judged, tmp_path / "unlabeled")
    with refused("output_exists", note=", made with other settings"):
        judge(seed=7)
    with refused("output_exists", note=", made with other settings"):
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

    with refused("output_exists", note=", made with other settings"):
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

    assert len(asyncio.run(cell()).rows) == 9


def test_mistakes_name_parameters(judge, triples, tmp_path):
    with refused("suffix_of_judgements", path="a.csv"):
        narrlit.judge(triples, llm=LLMOptions(), out=tmp_path / "a.csv")
    with refused("labels_of_read_triples"):
        judge(labels="l.jsonl")
    with refused("temperature", temperature=3):
        LLMOptions(temperature=3)


def judged_rows(rows, stories_of=lambda n: (f"x{n}", f"a{n}", f"b{n}")):
    """Judgements of rows (answers of the model in one or two orders, label, similarity to A minus that to B)."""
    table = StoryTable()
    triples, judgements = [], []
    for n, (answers, label, difference) in enumerate(rows):
        triples.append(Triple(*map(table.add, stories_of(n)), label))
        judgements.append(Judgement((difference, 0.0), tuple(Answer(answer) for answer in answers)))
    return judgements_of(judgements, Triples(table, triples), {})


def count(result, system, metric="accuracy", subset="all"):
    """Right answers and their number."""
    figure = result.estimate(system, metric, subset)
    return round(figure.value * figure.n) if figure.n else 0, figure.n


def test_overrides_and_choices_by_hand():
    chosen = [T, F, T, T, N, F]
    nearer = [-0.1, 0.5, 0.3, -0.2, 0.4, 0.9]
    labels = [T, T, T, N, T, F]
    result = judged_rows([((answer,), label, near) for answer, label, near in zip(chosen, labels, nearer, strict=True)])

    # Triples 1, 2, 4 and 6 are overridden; 4 has no label; the model is right on 1 and 6, wrong on 2.
    assert count(result, "llm", "overrides", "shares") == (4, 5)
    assert count(result, "llm", subset="choice: overrides") == (2, 3)
    assert count(result, "llm", subset="choice: agrees") == (1, 1)
    assert count(result, "similarities", subset="choice: none") == (1, 1)
    assert count(result, "llm") == (3, 4)
    assert count(result, "llm_of_all") == (3, 5)
    assert count(result, "hybrid") == (4, 5)
    assert count(result, "similarities") == (3, 5)
    assert count(result, "llm", "fallbacks", "shares") == (1, 6)
    assert count(result, "llm", "shown first", "shares") == (3, 5)
    assert count(result, "hybrid", subset="label: B") == (1, 1)
    assert result.settings == {"triples": 6, "labeled": 5}

    # By difference of the similarities, one triple in each fifth.
    assert [count(result, "hybrid", subset=f"margin: {end:.4f} to {end:.4f}") for end in (0.1, 0.3, 0.4, 0.5, 0.9)] == [
        (1, 1), (1, 1), (1, 1), (0, 1), (1, 1),
    ]  # fmt: skip


def test_swapped_answers_by_hand(tmp_path):
    answers = [(T, T), (T, F), (F, F), (N, T), (F, T)]
    result = judged_rows([(pair, True, 0.0) for pair in answers])

    assert count(result, "as_given") == (2, 4)
    assert count(result, "swapped") == (3, 5)
    assert count(result, "llm") == (1, 2)
    assert count(result, "llm", "same if swapped", "shares") == (2, 4)
    assert count(result, "llm", "shown first", "shares") == (2 + 2, 9)
    assert result.figures["ties"].dropna().tolist() == [5]
    check_result(result, tmp_path)


@given(ROWS)
def test_each_labeled_triple_is_in_one_part_of_each_facet(rows):
    result = judged_rows([((answer,), label, difference) for answer, label, difference in rows])
    labeled = sum(label is not None for _, label, _ in rows)
    for system in ("similarities", "llm", "hybrid") if labeled else ():
        whole = count(result, system)
        of_system = result.figures[(result.figures["system"] == system) & (result.figures["metric"] == "accuracy")]
        for facet in ("label", "choice", "margin"):
            subsets = of_system["subset"][of_system["subset"].str.startswith(facet)]
            parts = [count(result, system, subset=subset) for subset in subsets]
            assert (sum(right for right, _ in parts), sum(n for _, n in parts)) == whole


def test_accuracies_and_their_difference_are_by_story():
    rows = [((n < 9,), None if n == 4 else True, 0.5 if n % 2 else -0.5) for n in range(12)]
    result = judged_rows(rows, lambda n: (f"x{n // 3}", f"a{n}", f"b{n}"))
    known = [n for n in range(12) if n != 4]
    hybrid, near = np.array([n < 9 for n in known]), np.array([n % 2 == 1 for n in known])
    shared = SharedStories(np.array([[n // 3, 100 + n, 200 + n] for n in known]))

    assert result.estimate() == estimate(hybrid, shared) == result.estimate("hybrid", subset="label: A")
    assert result.estimate().method == "by_story"
    (row,) = result.differences.to_dict("records")
    assert (row["system"], row["against"], row["test"]) == ("hybrid", "similarities", "mcnemar_by_story")
    assert row["p"] == mcnemar_by_story(hybrid, near, shared)
