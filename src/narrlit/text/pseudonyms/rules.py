"""Names found by rule: capitals, word lists and the words around them; no model, hundreds of stories a second."""

from collections.abc import Sequence

from narrlit.text.pseudonyms.kinds import votes
from narrlit.text.pseudonyms.mentions import Mention
from narrlit.text.pseudonyms.names import names
from narrlit.text.pseudonyms.tokens import tokens


class Rules:
    """Finds names in English prose, each text by itself.

    A name is a run of capitalised words. A word that may owe its capital to its place, where a sentence or a quotation
    begins, counts if it has a capital within a sentence too, is a known given name or place, or if what follows it
    follows names: "Gondorff's", "Betty, a widow", "Vishal (Dheer)", "Michele has".

    - Titles stay out of the mention (Dr. McGee, King Arthur), and so do peoples before a person's name.
    - "X of Y" is one name behind nouns of places and bodies (Tower of London, University of X) and a given name
      (Joan of Arc); behind a title Y is a place's: the Duke of Verona.
    - Months, weekdays, peoples, languages, beliefs and wars are no names, but may be part of one: French Foreign
      Legion.
    - In words all in capitals only names known from elsewhere are found, and acronyms.

    What rules can't know: a name whose only mention begins a sentence, with a verb that is on no list; whether "Will"
    and "Grace" are names where they stand but once.
    """

    def find(self, texts: Sequence[str]) -> list[list[Mention]]:
        """The names of each text, in order; they do not overlap. A vote of None: nothing tells what it is."""
        return [_names(text) for text in texts]


def _names(text: str) -> list[Mention]:
    found = tokens(text)
    found_names = names(found)
    return [
        Mention(found[name.start].start, found[name.stop - 1].end, vote)
        for name, vote in zip(found_names, votes(found, found_names), strict=True)
    ]
