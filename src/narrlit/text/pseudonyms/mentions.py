"""Mentions: where a text speaks of somebody or something by name, as a backend finds them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

Kind = Literal["Character", "Location", "Organization", "Entity"]
"""What a placeholder may be, and how it begins."""


@dataclass(frozen=True, slots=True)
class Mention:
    """One mention.

    Attributes:
        start: its first character's place in the text.
        end: the place after its last character.
        kind: a vote for what it is; None: no vote.
        cluster: number of the coreference cluster it belongs to, within its text; None: of none.
    """

    start: int
    end: int
    kind: Kind | None
    cluster: int | None = None


class MentionFinder(Protocol):
    """A backend: finds the mentions of texts, each text by itself."""

    def find(self, texts: Sequence[str]) -> list[list[Mention]]:
        """The mentions of each text, by their place; they may overlap."""
