"""Which student is promoted, and what the state contains."""

import math
from dataclasses import asdict

from narrlit.callbacks.teacher_promotion import Rounds, verdict


def test_only_a_higher_accuracy_promotes():
    assert verdict(0.71, 0.7)[0]
    for student, teacher in ((0.7, 0.7), (0.69, 0.7), (None, 0.7), (None, None)):
        assert not verdict(student, teacher)[0], (student, teacher)
    assert verdict(0.2, None)[0]


def test_the_first_of_equal_students_is_the_rounds_best():
    book = Rounds()
    assert book.improves(0.5)

    book.student = {"accuracy": 0.5, "file": "a"}
    assert not book.improves(0.5)
    assert not book.improves(math.nan)
    assert not book.improves(None)
    assert book.improves(0.6)


def test_rounds_in_succession_without_a_promotion_are_counted():
    book = Rounds()
    for number, (student, teacher, without) in enumerate(
        [(0.6, None, 0), (0.6, 0.6, 1), (0.5, 0.6, 2), (0.7, 0.6, 0), (None, 0.7, 1)]
    ):
        book.enter(number)
        assert not book.closed
        book.student = None if student is None else {"accuracy": student, "file": "f"}
        book.teacher = None if teacher is None else {"accuracy": teacher, "name": "t"}
        entry = book.close()
        assert book.closed
        assert entry["round"] == number
        assert book.without == without
        assert entry["promoted"] == (without == 0)

    assert [entry["promoted"] for entry in book.history] == [True, False, False, True, False]


def test_the_state_is_plain_data():
    book = Rounds()
    book.student = {"accuracy": 0.5, "file": "a"}
    book.close()
    again = Rounds(**asdict(book))
    assert again == book
