"""A writer for tests in a language model's place: it knows StoryWorld, and writes sound negatives and views."""

import json
from dataclasses import dataclass, field

from narrlit.data.storyworld import StoryWorld, example
from narrlit.data.writers import write_examples
from narrlit.llm.messages import Reply
from narrlit.text.sentences import sentences


def world_triples(count, seed=5):
    return StoryWorld(seed).triples(count, "train")


def write_triples_to(path, count, seed=5):
    """A file of training rows, each with its triple's own negative alone."""
    write_examples(path, [example(triple) for triple in world_triples(count, seed)])
    return path


@dataclass
class ScriptedWriter:
    """Replies to requests for negatives and views of StoryWorld's anchors.

    Attributes:
        spoil: spoil(kind, content, attempt) gives another reply's text, or None for the sound one.
        asked: (kind, content, attempt) of every request, in order.
    """

    count: int = 50
    spoil: object = None
    finish: str = "stop"
    asked: list = field(default_factory=list)

    def __post_init__(self):
        world = StoryWorld(5)
        self.stories = {}
        for triple in world.triples(self.count, "train"):
            for story in (triple.anchor, triple.positive, triple.negative):
                self.stories[story.text] = story
        self.world = world

    def text(self, kind, content, attempt):
        """The reply; kind is theme, structure, outcome or views."""
        self.asked.append((kind, content, attempt))
        spoiled = self.spoil and self.spoil(kind, json.loads(content), attempt)
        if spoiled is not None and self.spoil:
            return spoiled
        if kind == "views":
            return json.dumps(self.views_of(json.loads(content)["story"]))
        return json.dumps({f"neg_{kind}": self.negative_of(json.loads(content)["anchor"], kind, attempt)})

    def negative_of(self, anchor, kind, attempt):
        """The negative of this number; as the world has it, or with a surname of its own where the number is high."""
        made = self.world.one_dimension_negatives(self.stories[anchor], attempt + 1)
        return [story.text for found, story in made if found == kind][attempt]

    def views_of(self, text):
        views = self.stories[text].views
        told = {views.theme, *views.events, views.outcome}
        events = [*(sentence for sentence in sentences(text) if sentence not in told), *views.events][-6:]
        return {"theme": views.theme, "plot_events": events, "outcome": views.outcome}

    async def __call__(self, request):
        """As the asker's transport."""
        kind = request.prompt.name.removeprefix("negatives_")
        return Reply(self.text(kind, request.content, request.attempt), self.finish, 10, 5)
