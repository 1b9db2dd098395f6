"""Multiple-choice questions: which of several candidates is most similar to a story.

Letters in shapes: Q questions.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, Field

from narrlit.data.rows import read_rows
from narrlit.encoding.story_encoder import StoryEncoder, unit_vectors
from narrlit.errors import DataError, reading


class ChoiceRow(BaseModel):
    """Question: a story, candidates, and the number of the right candidate."""

    anchor_text: str = Field(min_length=1)
    choices: list[str] = Field(min_length=2)
    answer: int = Field(ge=0)


def answer_choices(questions: Sequence[ChoiceRow], encoder: StoryEncoder, progress: bool = False) -> NDArray[np.bool_]:
    """Choose the candidate with the largest cosine to the anchor of each question; return the right answers, (Q,)."""
    texts: list[str] = []
    for question in questions:
        texts += [question.anchor_text, *question.choices]
    vectors = unit_vectors(encoder.embed(texts, progress=progress))
    right = []
    start = 0
    for question in questions:
        end = start + 1 + len(question.choices)
        cosines = vectors[start + 1 : end] @ vectors[start]
        right.append(cosines.argmax() == question.answer)
        start = end
    return np.array(right)


def read_choices(path: str | Path) -> list[ChoiceRow]:
    """Read questions from JSON Lines: anchor_text, choices (a list of texts) and answer (from 0).

    Raises:
        DataError: if a row is invalid; the message names the line and the field.
    """
    file = read_rows(path)
    questions = []
    for row in file.rows:
        with reading("broken_question", file.place(row)):
            question = ChoiceRow.model_validate(row.value)
        count = len(question.choices)
        if question.answer >= count:
            raise DataError("no_such_choice", place=file.place(row), answer=question.answer, choices=count)
        questions.append(question)
    return questions
