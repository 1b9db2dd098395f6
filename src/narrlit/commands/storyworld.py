"""narrlit storyworld: invented stories whose truth is known, in files."""

from dataclasses import asdict
from pathlib import Path

from narrlit.console import say
from narrlit.data.records import Story
from narrlit.data.storyworld import InventedStory, StoryWorld, WorldTriple, example, judged_triples
from narrlit.data.writers import write_examples, write_rows, write_stories, write_triples
from narrlit.errors import OptionError


def storyworld(
    *,
    out: str,
    seed: int = 0,
    train: int = 400,
    validation: int = 200,
    test: int = 200,
    negatives_per_dimension: int = 3,
    false_negatives: float = 0.0,
) -> None:
    """Write invented stories: train, validation and test triples, the stories alone, and their true views.

    Args:
        out: folder to write into; files of these names are replaced.
        seed: decides the stories.
        train: training examples; the triple's negative first, then those like the anchor in one dimension only.
        validation: labelled triples.
        test: labelled triples.
        negatives_per_dimension: for every training example and each of theme, structure and outcome.
        false_negatives: share of these negatives that are in truth like the anchor, 0 to 1; to test teacher masks.
    """
    for name, count in (("train", train), ("validation", validation), ("test", test)):
        _at_least(1, name, count)
    _at_least(0, "negatives-per-dimension", negatives_per_dimension)
    world = StoryWorld(seed)
    folder = Path(out)
    examples = [
        example(triple, world.one_dimension_negatives(triple.anchor, negatives_per_dimension, false_negatives))
        for triple in world.triples(train, "train")
    ]
    write_examples(folder / "train.jsonl", examples)
    _write_views(folder / "train_views.jsonl", world.triples(train, "train"))
    for split, count in (("validation", validation), ("test", test)):
        triples = world.triples(count, split)
        write_triples(folder / f"{split}.jsonl", judged_triples(triples))
        write_stories(folder / f"{split}_stories.jsonl", [Story(story.text) for story in _stories(triples)])
        _write_views(folder / f"{split}_views.jsonl", triples)
    say(f"{folder}: {train} training examples, {validation} and {test} triples to judge, seed {seed}")


def _at_least(least: int, option: str, count: int) -> None:
    if count < least:
        raise OptionError(f"--{option} {count}: at least {least} is needed")


def _stories(triples: list[WorldTriple]) -> list[InventedStory]:
    found = {story.text: story for t in triples for story in (t.anchor, t.positive, t.negative)}
    return list(found.values())


def _write_views(path: Path, triples: list[WorldTriple]) -> None:
    """The true views, with the structure they come from and the types of the names."""
    rows: list[dict[str, object]] = [
        {
            "text": story.text,
            "theme": story.views.theme,
            "plot_events": list(story.views.events),
            "course_of_action": " ".join(story.views.events),
            "outcome": story.views.outcome,
            "structure": asdict(story.structure),
            "names": dict(story.names),
        }
        for story in _stories(triples)
    ]
    write_rows(path, rows)
