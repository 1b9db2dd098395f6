"""Results that are computed in the background: each is kept, and a failure is forgotten once it was returned."""

import asyncio
import json
import threading

import pytest
from refusals import refused
from servers import wait_until

from narrlit.errors import DataError
from narrlit.serving.results import ResultKey, Results, computing_answer
from narrlit.serving.workers import Workers

KEY = ResultKey("tales", 1)


@pytest.fixture
def results():
    workers = Workers(threads=1, most_waiting=8, seconds=30)
    yield Results(workers)
    workers.close()


class Flaky:
    """A computation that fails the first time."""

    def __init__(self):
        self.calls = 0

    def __call__(self):
        self.calls += 1
        if self.calls == 1:
            raise DataError("cannot_write", path="map.json", reason="the disk is full")
        return "a map"


def settled(results, function):
    """The result when it is there, or the error of its computation."""
    return wait_until(lambda: results.get(KEY, function))


def test_a_result_is_computed_once(results):
    calls = []

    def compute():
        calls.append(1)
        return "a map"

    assert settled(results, compute) == "a map"
    assert results.get(KEY, compute) == "a map"
    assert asyncio.run(results.wait_for(KEY, compute)) == "a map"
    assert calls == [1]


def test_a_failure_is_returned_once_to_who_asks_again(results):
    flaky = Flaky()
    with refused("cannot_write"):
        settled(results, flaky)
    assert settled(results, flaky) == "a map"
    assert flaky.calls == 2


def test_a_failure_is_returned_once_to_who_waits(results):
    flaky = Flaky()
    with refused("cannot_write"):
        asyncio.run(results.wait_for(KEY, flaky))
    assert asyncio.run(results.wait_for(KEY, flaky)) == "a map"


def test_the_results_of_an_older_version_are_forgotten(results):
    assert settled(results, lambda: "old") == "old"
    newer = ResultKey("tales", 2)
    assert wait_until(lambda: results.get(newer, lambda: "new")) == "new"
    assert settled(results, lambda: "computed again") == "computed again"


def test_a_result_that_waits_is_dropped_when_the_collection_changes(results):
    begun, may_end = threading.Event(), threading.Event()
    other = ResultKey("other", 1)

    def slow():
        begun.set()
        may_end.wait(30)
        return "other"

    calls = []
    assert results.get(other, slow) is None
    begun.wait(30)
    assert results.get(KEY, calls.append, 1) is None
    assert results.get(ResultKey("tales", 2), lambda: "new") is None
    may_end.set()
    assert wait_until(lambda: results.get(ResultKey("tales", 2), lambda: "new")) == "new"
    assert results.get(other, slow) == "other"
    assert calls == []


def test_an_answer_about_an_unfinished_result_claims_no_progress():
    answer = computing_answer()
    assert answer.status_code == 202
    assert json.loads(answer.body) == {"status": "computing"}


def test_results_of_a_deleted_collection_are_forgotten(results):
    other = ResultKey("ships", 1)
    for key, text in ((KEY, "old"), (other, "kept")):
        wait_until(lambda key=key, text=text: results.get(key, lambda: text))
    results.forget("tales")

    assert settled(results, lambda: "new") == "new"
    assert results.get(other, lambda: "new") == "kept"
