"""Stories, triples and training examples with placeholders for names."""

from collections.abc import Sequence
from dataclasses import replace

from narrlit.data.records import Example, Story, Triple
from narrlit.errors import OptionError
from narrlit.text.pseudonyms.options import Pseudonyms, Scope
from narrlit.text.pseudonyms.pseudonymiser import open_backend, pseudonymise


def pseudonymised_stories(stories: Sequence[Story], options: Pseudonyms) -> list[Story]:
    """Stories with placeholders for names, each by itself; with backend none, as they are.

    Raises:
        OptionError: if the scope is a triple.
        ModelError, MissingExtraError: if the backend can't be had.
    """
    if options.backend == "none":
        return list(stories)
    check_scope(options.scope)
    found = _changed([(story.text,) for story in stories], options)
    return [replace(story, text=text) for story, (text,) in zip(stories, found, strict=True)]


def pseudonymised_triples(triples: Sequence[Triple], options: Pseudonyms) -> list[Triple]:
    """Triples with placeholders for names, which its three stories share if the scope is a triple.

    Raises:
        ModelError, MissingExtraError: if the backend can't be had.
    """
    if options.backend == "none":
        return list(triples)
    found = _changed([triple.texts for triple in triples], options)
    return [triple.with_texts(texts) for triple, texts in zip(triples, found, strict=True)]


def pseudonymised_examples(examples: Sequence[Example], options: Pseudonyms) -> list[Example]:
    """Training examples with placeholders for names, which all stories of one share if the scope is a triple.

    Raises:
        ModelError, MissingExtraError: if the backend can't be had.
    """
    if options.backend == "none":
        return list(examples)
    found = _changed([example.texts for example in examples], options)
    return [example.with_texts(texts) for example, texts in zip(examples, found, strict=True)]


def check_scope(scope: Scope, what: str = "stories alone") -> None:
    """Refuse the scope of a triple where there are no triples.

    Raises:
        OptionError: if it is a triple.
    """
    if scope == "triple":
        raise OptionError(
            f"scope triple has no use for {what}: the vector of a story must not depend on other stories; "
            "use scope story"
        )


def _changed(records: Sequence[tuple[str, ...]], options: Pseudonyms) -> list[tuple[str, ...]]:
    """The texts of each record; what shares a mapping is looked at once, however often it occurs."""
    finder = open_backend(options)
    if options.scope == "triple":
        different = list(dict.fromkeys(records))
        new = dict(zip(different, (group.texts for group in pseudonymise(different, finder)), strict=True))
        return [new[texts] for texts in records]
    texts = list(dict.fromkeys(text for record in records for text in record))
    found = pseudonymise([(text,) for text in texts], finder)
    of_text = {text: group.texts[0] for text, group in zip(texts, found, strict=True)}
    return [tuple(of_text[text] for text in record) for record in records]
