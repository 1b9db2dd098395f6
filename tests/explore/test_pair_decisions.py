"""Decisions on pairs: their file, which survives a kill, and tables that readers fill in."""

import json
import multiprocessing
import os
import signal
import threading

import pytest
from refusals import refused

from narrlit.data.writers import write_table
from narrlit.explore.pair_decisions import PairDecision, PairDecisions, StoryPair, read_decisions


@pytest.fixture
def decisions(tmp_path):
    return PairDecisions(tmp_path / "decisions.jsonl")


def made(decisions):
    return [(each.pair.a, each.pair.b, each.decision, each.reader) for each in decisions]


def test_a_file_that_does_not_exist_has_no_decisions(decisions):
    assert made(decisions) == []
    assert decisions.table().columns.tolist() == ["id_a", "id_b", "decision", "reader"]


def test_a_later_decision_of_a_reader_replaces_an_earlier_one_in_any_order_of_the_ids(decisions):
    decisions.add("a", "b", "same", "anna")
    decisions.add("a", "b", "different", "ben")
    decisions.add("b", "a", "unsure", "anna")

    assert made(decisions) == [("a", "b", "unsure", "anna"), ("a", "b", "different", "ben")]


def test_a_decision_is_withdrawn_and_the_file_only_grows(decisions):
    decisions.add("a", "b", "same", "anna")
    before = decisions.path.read_bytes()
    decisions.delete("b", "a", "anna")

    assert made(decisions) == []
    assert decisions.path.read_bytes().startswith(before)
    with refused("no_decision", name="anna", a="a", b="b"):
        decisions.delete("a", "b", "anna")


@pytest.mark.parametrize(
    ("arguments", "refusal"),
    [
        (("a", "b", "maybe"), {"code": "unknown_choice", "option": "decision", "found": "maybe"}),
        (("a", "a", "same"), {"code": "pair_of_itself", "id": "a"}),
    ],
)
def test_a_decision_that_makes_no_sense_is_refused(decisions, arguments, refusal):
    with refused(**refusal):
        decisions.add(*arguments)

    assert not decisions.path.exists()


def test_a_file_that_can_not_be_written_is_refused(tmp_path):
    (tmp_path / "file").touch()

    with refused("cannot_write"):
        PairDecisions(tmp_path / "file" / "decisions.jsonl").add("a", "b", "same")


@pytest.mark.parametrize("cut", range(1, 60, 7))
def test_an_unfinished_line_is_left_out_and_removed_by_the_next_decision(decisions, cut):
    decisions.add("a", "b", "same", "anna")
    decisions.add("a", "c", "same", "anna")
    decisions.path.write_bytes(decisions.path.read_bytes()[:-cut])
    whole = [("a", "b", "same", "anna")] + ([("a", "c", "same", "anna")] if cut == 1 else [])  # only the line break

    assert made(decisions) == whole

    decisions.add("a", "d", "different", "anna")
    assert made(decisions) == [*whole, ("a", "d", "different", "anna")]
    lines = decisions.path.read_text().splitlines()
    assert [json.loads(line)["id_b"] for line in lines] == [*(pair[1] for pair in whole), "d"]


def test_a_damaged_line_is_named(decisions):
    decisions.add("a", "b", "same", "anna")
    with decisions.path.open("a") as file:
        file.write('{"id_a": "x", "id_b": "y", "decision": "perhaps"}\n')

    with refused("broken_decision", path="decisions.jsonl", line=2):
        list(decisions)


def decide_until_killed(path, announced):
    decisions = PairDecisions(path)
    for number in range(100_000):
        decisions.add("story", str(number), "same", "anna")
        announced.send(number)


def test_every_decision_that_returned_survives_a_kill(decisions):
    received, announced = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.get_context("fork").Process(target=decide_until_killed, args=(decisions.path, announced))
    process.start()
    last = -1
    while last < 20:
        last = received.recv()
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    while received.poll():
        last = received.recv()
    numbers = sorted(int(each.pair.a) for each in decisions)

    assert numbers[: last + 1] == list(range(last + 1))
    assert len(numbers) <= last + 2

    decisions.add("another", "one", "different", "ben")
    assert len(list(decisions)) == len(numbers) + 1


def test_several_threads_decide_at_once(decisions):
    def decide(reader):
        for number in range(10):
            PairDecisions(decisions.path).add("story", str(number), "same", reader)

    threads = [threading.Thread(target=decide, args=(f"reader {number}",)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(list(decisions)) == 40


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".xlsx", ".jsonl"])
def test_a_written_table_is_read_back(decisions, tmp_path, suffix):
    decisions.add("a", "=b", "same", "anna")
    decisions.add("a", "1", "unsure", "ben")
    decisions.write(tmp_path / f"table{suffix}")

    assert read_decisions([tmp_path / f"table{suffix}"]) == list(decisions)


def test_a_filled_in_table_has_the_reader_of_its_name_where_no_other_is_given(tmp_path):
    rows = [
        {"id_a": 2, "id_b": "1", "similarity": 0.5, "decision": " Same ", "reader": ""},
        {"id_a": "1", "id_b": "3", "similarity": 0.4, "decision": "different", "reader": "ben"},
        {"id_a": "1", "id_b": "4", "similarity": 0.3, "decision": "", "reader": ""},
    ]
    write_table(tmp_path / "anna.xlsx", rows)

    assert read_decisions([tmp_path / "anna.xlsx"]) == [
        PairDecision(StoryPair("1", "2"), "same", "anna"),
        PairDecision(StoryPair("1", "3"), "different", "ben"),
    ]


@pytest.mark.parametrize(
    ("content", "refusal"),
    [
        (
            "id_a,decision\nx,same\n",
            {"code": "missing_columns", "path": "anna.csv", "column": "id_b", "found": "id_a, decision"},
        ),
        (
            "id_a,id_b,decision\nx,y,equal\n",
            {"code": "invalid_decision", "place": "anna.csv:2", "known": "same, different, unsure"},
        ),
        ("id_a,id_b,decision\nx,x,same\n", {"code": "invalid_decision", "place": "anna.csv:2"}),
        ("id_a,id_b,decision\n,y,same\n", {"code": "invalid_decision", "place": "anna.csv:2"}),
    ],
)
def test_a_mistake_in_a_table_is_named_with_its_line(make, content, refusal):
    with refused(**refusal):
        read_decisions([make("anna.csv", content)])
