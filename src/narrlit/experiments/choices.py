"""Multiple-choice questions: which of several candidates is most similar to a story.

Letters in shapes: Q questions, C candidates of a question.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, Field

from narrlit.data.rows import read_rows
from narrlit.encoding.story_encoder import StoryEncoder, unit_vectors
from narrlit.errors import DataError, reading
from narrlit.metrics.significance import AccuracySummary

REMEDY = "write anchor_text, choices (a list of texts) and answer (number of the right one, from 0)"


class ChoiceRow(BaseModel):
    """Question: a story, candidates, and the number of the right candidate."""

    anchor_text: str = Field(min_length=1)
    choices: list[str] = Field(min_length=2)
    answer: int = Field(ge=0)


@dataclass(frozen=True)
class Choices:
    """Q questions.

    Attributes:
        questions: the questions.
    """

    questions: Sequence[ChoiceRow]

    @property
    def chance(self) -> float:
        """Accuracy of guessing."""
        return sum(1 / len(question.choices) for question in self.questions) / len(self.questions)

    def accuracy(self, encoder: StoryEncoder, progress: bool = False) -> AccuracySummary:
        """Compute the accuracy of choosing the candidate with the largest cosine to the anchor."""
        texts: list[str] = []
        for question in self.questions:
            texts += [question.anchor_text, *question.choices]
        vectors = unit_vectors(encoder.embed(texts, progress=progress))
        start = correct = 0
        for question in self.questions:
            end = start + 1 + len(question.choices)
            cosines = vectors[start + 1 : end] @ vectors[start]
            correct += int(cosines.argmax() == question.answer)
            start = end
        return AccuracySummary(len(self.questions), correct)


def read_choices(path: str | Path) -> Choices:
    """Read questions from JSON Lines: anchor_text, choices (a list of texts) and answer (from 0).

    Raises:
        DataError: if a row is invalid; the message names the line and the field.
    """
    file = read_rows(path)
    questions = []
    for row in file.rows:
        with reading("question", file.place(row), REMEDY):
            question = ChoiceRow.model_validate(row.value)
        count = len(question.choices)
        if question.answer >= count:
            raise DataError(f"{file.place(row)}: answer {question.answer}: there are {count} choices, from 0")
        questions.append(question)
    return Choices(questions)
