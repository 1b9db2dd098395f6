"""How stories are pseudonymised, as plain data: what a config file or a command line says."""

from dataclasses import dataclass
from typing import Literal

Backend = Literal["none", "rules", "spacy", "spacy+coref"]
Scope = Literal["story", "triple"]


@dataclass(frozen=True)
class Pseudonyms:
    """How names become placeholders.

    Attributes:
        backend: who finds the names: `rules` needs no model; `spacy` a pipeline with an entity recogniser;
            `spacy+coref` also fastcoref, which finds what refers to the same; `none`: names stay.
        scope: what shares a mapping: each `story` has its own, or the three stories of a `triple` have one, as
            ttda704's Track A has it; then a story's text depends on the triple it stands in.
        pipeline: spaCy's, by name or path.
        coref_model: fastcoref's, by hub id or folder; only `spacy+coref` reads it.
    """

    backend: Backend = "none"
    scope: Scope = "story"
    pipeline: str = "en_core_web_trf"
    coref_model: str = "biu-nlp/f-coref"
