"""Other names for the names of a story, without an entity recognizer: found by their capitals in a collection."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

WORD = re.compile(r"(?<![\w'’-])[^\W\d_]+")
INSIDE = re.compile(r"(?:(?<=[^\W\d_] )|(?<=[,;] ))[^\W\d_]+")
"""Words within a sentence, where only names begin with a capital: after a word, a comma or a semicolon."""
SHARE = 0.9
"""Smallest share of a name's occurrences within sentences that are capitalized."""


def find_names(texts: Iterable[str]) -> list[str]:
    """Find the names in a collection: words that are nearly always capitalized, also within sentences.

    A collection is needed, since one text does not show that *Wolf* is a common noun. Languages that capitalize all
    nouns, such as German, and scripts without capitals are not supported.

    Args:
        texts: the texts.

    Returns:
        Names, the most frequent first. Each is one word.

    >>> find_names(["The fox met Reynard. Then Reynard saw the Fox run.", "A fox, said Anna, is no fox."])
    ['Reynard', 'Anna']
    """
    capitalized: Counter[str] = Counter()
    lower: Counter[str] = Counter()
    for text in texts:
        for word in INSIDE.findall(text):
            if word.istitle() and len(word) > 1:
                capitalized[word] += 1
            else:
                lower[word.lower()] += 1
    names = []
    for word, count in capitalized.most_common():
        if count >= SHARE * (count + lower[word.lower()]):
            names.append(word)
    return names


def rename(text: str, names: Sequence[str], rng: np.random.Generator) -> str:
    """Replace each name in a text by another name of the collection that the text does not contain.

    Args:
        text: the text.
        names: names of the collection, from `find_names`.
        rng: source of the choice.

    Returns:
        The text with other names; a name for which none is left is unchanged.

    >>> rename("Anna met Bert; Anna ran.", ["Anna", "Bert", "Cleo", "Dora"], np.random.default_rng(0))
    'Cleo met Dora; Cleo ran.'
    """
    known = set(names)
    own_names = known.intersection(WORD.findall(text))
    others = [name for name in names if name not in own_names]
    count = min(len(own_names), len(others))
    chosen = rng.choice(len(others), count, replace=False)
    new_name = {name: others[number] for name, number in zip(sorted(own_names), chosen, strict=False)}
    return WORD.sub(lambda word: new_name.get(word[0], word[0]), text)
