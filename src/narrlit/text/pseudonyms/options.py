"""How stories are pseudonymised, as plain data: what a config file or a command line says."""

from dataclasses import dataclass
from typing import Literal

from narrlit.errors import OptionError

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
        pipeline: spaCy's, by name or path; `rules` reads none.
        coref_model: fastcoref's, by hub id or folder; only `spacy+coref` reads it.
    """

    backend: Backend = "none"
    scope: Scope = "story"
    pipeline: str = "en_core_web_trf"
    coref_model: str = "biu-nlp/f-coref"

    def __post_init__(self) -> None:
        """Check that what is given is read; `none` may hide the other settings of a config for an ablation.

        Raises:
            OptionError: for a pipeline or a coreference model that the backend does not read.
        """
        if self.backend == "rules" and self.pipeline != Pseudonyms.pipeline:
            raise OptionError(f"pipeline {self.pipeline}: rules reads none; choose spacy, or leave the pipeline out")
        if self.backend in ("rules", "spacy") and self.coref_model != Pseudonyms.coref_model:
            raise OptionError(
                f"coref_model {self.coref_model}: {self.backend} reads none; choose spacy+coref, or leave the model out"
            )
