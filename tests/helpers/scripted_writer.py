"""A writer for tests in a language model's place: it knows StoryWorld, and writes sound negatives and views."""

import json
from dataclasses import dataclass, field

from llm_server import question, schema_of

from narrlit.data.schema import StoryTable
from narrlit.data.storyworld import StoryWorld, synthetic_examples
from narrlit.data.writers import write_examples
from narrlit.preprocessing.sentences import split_sentences as sentences

SEED = 42


def world_triples(count):
    return StoryWorld(5).triples(count, "train")


def write_rows_of(path, count):
    """A file of training rows, each with its triple's own negative alone."""
    write_examples(path, synthetic_examples(world_triples(count), [[]] * count, StoryTable()))
    return path


@dataclass
class ScriptedWriter:
    """Replies to requests for negatives and views of StoryWorld's anchors.

    Attributes:
        count: how many of the world's triples it knows, of each split.
        seed: of the world.
        splits: which it knows.
        spoil: spoil(kind, content, attempt) gives another reply's text, or None for the sound one.
        asked: (kind, content, attempt) of every request, in order.
    """

    count: int = 50
    spoil: object = None
    asked: list = field(default_factory=list)
    seed: int = 5
    splits: tuple = ("train",)

    def __post_init__(self):
        self.world = StoryWorld(self.seed)
        triples = [triple for split in self.splits for triple in self.world.triples(self.count, split)]
        self.stories = {story.text: story for t in triples for story in (t.anchor, t.positive, t.negative)}

    def text(self, kind, content, attempt):
        """The reply; kind is theme, structure, outcome or views."""
        self.asked.append((kind, content, attempt))
        spoiled = None if self.spoil is None else self.spoil(kind, json.loads(content), attempt)
        if spoiled is not None:
            return spoiled
        if kind == "views":
            return json.dumps(self.views_of(json.loads(content)["story"]))
        return json.dumps({f"neg_{kind}": self.negative_of(json.loads(content)["anchor"], kind, attempt)})

    def negative_of(self, anchor, kind, attempt):
        """The world's negative of this number."""
        made = self.world.one_aspect_negatives(self.stories[anchor], attempt + 1)
        aspect = "action" if kind == "structure" else kind
        return [story.text for found, story in made if found == aspect][attempt]

    def views_of(self, text):
        views = self.stories[text].views
        action = views.action.split("\n")
        others = [sentence for sentence in sentences(text) if sentence not in {views.theme, *action, views.outcome}]
        events = [*others, *action][-6:]
        return {"theme": views.theme, "plot_events": events, "outcome": views.outcome}

    def reply_of(self, body):
        """As the reply of an LLMServer; the attempt is told by the seed."""
        fields = schema_of(body)["properties"]
        kind = "views" if "plot_events" in fields else next(iter(fields)).removeprefix("neg_")
        return self.text(kind, question(body), body["seed"] - SEED)
