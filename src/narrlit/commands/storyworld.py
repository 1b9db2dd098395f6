"""narrlit storyworld: synthetic stories with known theme, course of action and outcome, in files."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from narrlit.console import say
from narrlit.data.schema import StoryTable
from narrlit.data.storyworld import StoryWorld, SyntheticTriple, synthetic_examples, synthetic_triples
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


def storyworld(
    *,
    out: Annotated[str, Output.folder(*FILES)],
    seed: int = 0,
    train: int = 400,
    validation: int = 200,
    test: int = 200,
    negatives_per_aspect: int = 3,
    false_negatives: float = 0.0,
) -> None:
    """Write synthetic stories: train, validation and test triples, the stories alone, and their true views.

    Args:
        out: folder to write into.
        seed: seed of the random stories.
        train: number of training examples; the triple's negative first, then those like the anchor in one aspect only.
        validation: number of labeled validation triples.
        test: number of labeled test triples.
        negatives_per_aspect: negatives of a training example for each aspect (theme, action, outcome).
        false_negatives: share of these negatives that are similar to the anchor in truth, 0 to 1; tests masking.
    """
    for name, count, least in (
        ("train", train, 1),
        ("validation", validation, 1),
        ("test", test, 1),
        ("negatives-per-aspect", negatives_per_aspect, 0),
    ):
        if count < least:
            raise OptionError(f"--{name} {count}: at least {least} is needed")
    world, folder = StoryWorld(seed), Path(out)
    triples = world.triples(train, "train")
    negatives = [world.one_aspect_negatives(t.anchor, negatives_per_aspect, false_negatives) for t in triples]
    write_examples(folder / "train.jsonl", synthetic_examples(triples, negatives, StoryTable()))
    _write_views(folder / "train_views.jsonl", triples)
    for split, count in (("validation", validation), ("test", test)):
        triples = world.triples(count, split)
        rows = synthetic_triples(triples, StoryTable())
        write_triples(folder / f"{split}.jsonl", rows)
        write_stories(folder / f"{split}_stories.jsonl", rows.stories)
        _write_views(folder / f"{split}_views.jsonl", triples)
    say(f"{folder}: {train} training examples, {validation} and {test} triples, seed {seed}")


def _write_views(path: Path, triples: Sequence[SyntheticTriple]) -> None:
    """Write the true views, with the structure they come from and the kinds of the names."""
    stories = {story.text: story for triple in triples for story in (triple.anchor, triple.positive, triple.negative)}
    rows = [
        {
            "text": story.text,
            "theme": story.views.theme,
            "plot_events": story.views.action.split("\n"),
            "course_of_action": story.views.action.replace("\n", " "),
            "outcome": story.views.outcome,
            "structure": asdict(story.structure),
            "names": dict(story.names),
        }
        for story in stories.values()
    ]
    write_rows(path, rows)
