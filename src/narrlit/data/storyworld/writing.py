"""Files of StoryWorld: training examples, labeled triples, their stories, and the true views of these."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

from narrlit.data.schema import StoryTable, TrainingExamples, Triples
from narrlit.data.storyworld import (
    StoryWorld,
    SyntheticStory,
    SyntheticTriple,
    synthetic_examples,
    synthetic_triples,
)
from narrlit.data.writers import write_examples, write_rows, write_stories, write_triples
from narrlit.errors import OptionError
from narrlit.files import Output

FILES = (
    "train.jsonl",
    "train_views.jsonl",
    "validation.jsonl",
    "validation_stories.jsonl",
    "validation_views.jsonl",
    "test.jsonl",
    "test_stories.jsonl",
    "test_views.jsonl",
)
"""Names of the files in their folder."""


@dataclass(frozen=True, eq=False)
class StoryWorldFiles:
    """Synthetic stories that were written to the files of a folder.

    Attributes:
        folder: folder of the files named in `FILES`.
        seed: seed of the stories.
        train: training examples.
        validation: labeled triples.
        test: labeled triples.
    """

    folder: Path
    seed: int
    train: TrainingExamples
    validation: Triples
    test: Triples

    @property
    def paths(self) -> list[Path]:
        """Paths of the files."""
        return [self.folder / name for name in FILES]

    def __str__(self) -> str:
        """One line: numbers of examples and triples, seed."""
        triples = f"{len(self.validation)} and {len(self.test)} triples"
        return f"{len(self.train)} training examples, {triples}, seed {self.seed}"


def write_storyworld(
    out: Annotated[str | Path, Output.folder(*FILES)],
    *,
    seed: int = 0,
    train: int = 400,
    validation: int = 200,
    test: int = 200,
    negatives_per_aspect: int = 3,
    false_negatives: float = 0.0,
) -> StoryWorldFiles:
    """Write synthetic stories: training examples, validation and test triples, their stories, and the true views.

    Args:
        out: folder to write to; existing files are replaced.
        seed: seed of the stories.
        train: number of training examples. The first negative of each is that of its triple; the others are similar to
            the anchor in one aspect only.
        validation: number of labeled validation triples.
        test: number of labeled test triples.
        negatives_per_aspect: number of these other negatives for each aspect (theme, action, outcome).
        false_negatives: share of these other negatives, 0 to 1, that are similar to the anchor in all aspects; for
            tests of the masking of false negatives.

    Returns:
        A `StoryWorldFiles`: `.paths`, `.train`, `.validation`, `.test`.

    Raises:
        OptionError: if a number is too small, or the share is not between 0 and 1; nothing is written.

    >>> written = write_storyworld(getfixture("tmp_path"), train=2, validation=1, test=1)
    >>> [len(examples) for examples in (written.train, written.validation, written.test)]
    [2, 1, 1]
    >>> len(written.train.rows[0].negatives)
    10
    """
    for name, count in (("train", train), ("validation", validation), ("test", test)):
        _check_count(name, count, least=1)
    _check_count("negatives_per_aspect", negatives_per_aspect, least=0)

    world, folder = StoryWorld(seed), Path(out)
    triples = world.triples(train)
    negatives = [world.one_aspect_negatives(triple.anchor, negatives_per_aspect, false_negatives) for triple in triples]
    examples = synthetic_examples(triples, negatives, StoryTable())
    write_examples(folder / "train.jsonl", examples)
    _write_views(folder / "train_views.jsonl", triples)
    return StoryWorldFiles(
        folder,
        seed,
        examples,
        _write_split(folder, "validation", world.triples(validation, "validation")),
        _write_split(folder, "test", world.triples(test, "test")),
    )


def _check_count(name: str, count: int, least: int) -> None:
    if count < least:
        raise OptionError("at_least", option=name, found=count, least=least)


def _write_split(folder: Path, split: str, synthetic: Sequence[SyntheticTriple]) -> Triples:
    """Write labeled triples, their stories and their views."""
    triples = synthetic_triples(synthetic, StoryTable())
    write_triples(folder / f"{split}.jsonl", triples)
    write_stories(folder / f"{split}_stories.jsonl", triples.stories)
    _write_views(folder / f"{split}_views.jsonl", synthetic)
    return triples


def _write_views(path: Path, triples: Sequence[SyntheticTriple]) -> None:
    """Write the views of each distinct story once."""
    stories: dict[str, SyntheticStory] = {}
    for triple in triples:
        for story in (triple.anchor, triple.positive, triple.negative):
            stories[story.text] = story
    write_rows(path, [_views_row(story) for story in stories.values()])


def _views_row(story: SyntheticStory) -> dict[str, object]:
    """Return the true views of a story, the structure that they express, and the kinds of its names."""
    return {
        "text": story.text,
        "theme": story.views.theme,
        "plot_events": story.views.action.split("\n"),
        "course_of_action": story.views.action.replace("\n", " "),
        "outcome": story.views.outcome,
        "structure": asdict(story.structure),
        "names": dict(story.names),
    }
