"""The language of a text, roughly: by its script and its commonest words; enough to tell when one has changed."""

import re
import unicodedata
from collections import Counter
from functools import lru_cache


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_COMMONEST = {
    "English": _set("the and of to in is that it was he she they with for as his her on at by had not from who but"),
    "German": _set("der die das und ist nicht ein eine zu den mit sich des auf für im dem er sie war als von hat"),
    "French": _set("le la les et des est un une dans que qui pour pas sur il elle au du avec son ses ne en était"),
    "Spanish": _set("el la los las y que en un una es por con no su para del se al lo como más pero era fue"),
    "Portuguese": _set("o a os as e que em um uma é por com não seu sua para do da se ao mais mas era foi ele ela"),
    "Italian": _set("il la gli e che di un una è per con non suo sua del della si al lo come più ma era fu nel ha"),
    "Dutch": _set("de het een en van is niet dat op te zijn met voor hij zij was aan maar ook om er naar uit bij"),
    "Polish": _set("i w na się nie że z do jest to jak ale po przez od był była jego jej dla który która tym"),
}
_WORD = re.compile(r"[^\W\d_]+")
_STRANGE = 0.02


def language_of(text: str) -> str | None:
    """The language, or for texts that are not in Latin letters their script; None where too little tells it.

    >>> language_of("He was the last of them, and nobody asked who he had been.")
    'English'
    >>> language_of("Князь уехал в Москву."), language_of("Oslo, Bergen, Trondheim")
    ('CYRILLIC', None)
    """
    script = scripts_of(text).most_common(1)
    if script and script[0][0] != "LATIN":
        return script[0][0]
    words = [word.casefold() for word in _WORD.findall(text)]
    found = {language: sum(word in common for word in words) for language, common in _COMMONEST.items()}
    (best, most), (_, next_most) = sorted(found.items(), key=lambda entry: -entry[1])[:2]
    return best if most >= 3 and most > 1.5 * next_most and most >= 0.1 * len(words) else None


def same_language(text: str, other: str) -> bool:
    """Whether a text may be in the language of another; true where too little tells it.

    Letters of a script that the other has not, more than one in fifty, make it another language, too: models fall into
    a second language in the middle of a story.
    """
    one, another = language_of(text), language_of(other)
    if one is not None and another is not None and one != another:
        return False
    scripts, known = scripts_of(text), scripts_of(other)
    strange = sum(count for script, count in scripts.items() if script not in known)
    return strange <= _STRANGE * scripts.total()


def scripts_of(text: str) -> Counter[str]:
    """How many letters of each script a text has, by the first word of the letters' Unicode names."""
    return Counter(_script(character) for character in text if character.isalpha())


@lru_cache(maxsize=4096)
def _script(letter: str) -> str:
    return unicodedata.name(letter, "UNNAMED").partition(" ")[0]
