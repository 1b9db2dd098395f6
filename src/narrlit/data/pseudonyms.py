"""Stories, triples and training examples with placeholders for names."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from narrlit.data.records import Example, Story, Triple
from narrlit.errors import OptionError
from narrlit.preprocessing.pseudonyms import PseudonymOptions, pseudonymize_texts

Names = Mapping[str, Mapping[str, str]]
"""Of each text its names, for backend `given`."""


def pseudonymised_stories(stories: Sequence[Story], options: PseudonymOptions) -> list[Story]:
    """Pseudonymize stories, each by itself.

    Raises:
        OptionError: if the scope is a triple.
    """
    if options.backend != "none" and options.scope == "triple":
        raise OptionError("scope triple needs triples: a story alone must not depend on others; use scope story")
    texts = _changed([(story.text,) for story in stories], options, None)
    return [replace(story, text=text) for story, (text,) in zip(stories, texts, strict=True)]


def pseudonymised_triples(
    triples: Sequence[Triple], options: PseudonymOptions, names: Names | None = None
) -> list[Triple]:
    """Pseudonymize triples."""
    texts = _changed([triple.texts for triple in triples], options, names)
    return [triple.with_texts(each) for triple, each in zip(triples, texts, strict=True)]


def pseudonymised_examples(
    examples: Sequence[Example], options: PseudonymOptions, names: Names | None = None
) -> list[Example]:
    """Pseudonymize training examples."""
    texts = _changed([example.texts for example in examples], options, names)
    return [example.with_texts(each) for example, each in zip(examples, texts, strict=True)]


def _changed(
    records: Sequence[tuple[str, ...]], options: PseudonymOptions, names: Names | None
) -> list[tuple[str, ...]]:
    """Pseudonymize the texts of each record; each scope once, however often it occurs."""
    scopes = records if options.scope == "triple" else [(text,) for record in records for text in record]
    different = list(dict.fromkeys(scopes))
    given = None if names is None else [{k: v for text in each for k, v in names[text].items()} for each in different]
    results = pseudonymize_texts(different, options, given)
    texts = {scope: tuple(one.text for one in each) for scope, each in zip(different, results, strict=True)}
    if options.scope == "triple":
        return [texts[record] for record in records]
    return [tuple(texts[(text,)][0] for text in record) for record in records]
