"""Names as a spaCy pipeline's entity recogniser finds them, and what refers to them where a coreference model is named.

Source: ttda704 (SemEval-2026 Task 4), section on pseudonymisation: PERSON votes for a character, GPE, LOC and FAC for a
location, ORG and NORP for an organisation. Pipelines of other languages call the same things by other labels.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from narrlit.errors import DataError, ModelError
from narrlit.optional import require
from narrlit.text.pseudonyms.clusters import with_clusters
from narrlit.text.pseudonyms.coref import Coreference, open_coreference
from narrlit.text.pseudonyms.mentions import Kind, Mention
from narrlit.text.pseudonyms.placeholders import protected
from narrlit.text.pseudonyms.spans import outside, trimmed

EXTRA = "text"

_LABELS: dict[Kind, str] = {
    "Character": "PERSON PER PRS PS PERSNAME",
    "Location": "GPE LOC FAC FACILITY LC GPE_LOC PLACENAME GEOGNAME",
    "Organization": "ORG NORP ORGANIZATION NAT_REL_POL OG GPE_ORG ORGNAME",
}
_KINDS = {label: kind for kind, labels in _LABELS.items() for label in labels.split()}
# Times and quantities, and words made from a name (DRV, DERIV_PER) that are none themselves.
_OTHER_LABELS = (
    "DATE TIME DATETIME PERIOD DT TI TME PERCENT MONEY QUANTITY ORDINAL CARDINAL NUMERIC_VALUE QT MSR PHONE DRV "
    "DERIV_PER TITLE_AFFIX MOVEMENT"
)
_NO_NAMES = frozenset(_OTHER_LABELS.split())
_RECOGNISERS = {"ner", "beam_ner"}
_EMBEDDERS = {"tok2vec", "transformer", "curated_transformer"}


def kind_of(label: str) -> Kind | None:
    """What an entity's label votes for; None: it marks no name. A label that nobody knows is a name of some kind."""
    label = label.upper()
    return None if label in _NO_NAMES else _KINDS.get(label, "Entity")


class SpacyNames:
    """A MentionFinder: the names that a spaCy pipeline marks as entities, and their coreference clusters if asked."""

    def __init__(self, pipeline: Any, coreference: Coreference | None = None) -> None:
        """Nothing is read yet.

        Args:
            pipeline: a spaCy `Language` that sets `doc.ents`.
            coreference: finds what refers to the same; None: names alone.
        """
        self._pipeline = pipeline
        self._coreference = coreference

    def find(self, texts: Sequence[str]) -> list[list[Mention]]:
        """The mentions of each text, by their place; each text is read by itself.

        Placeholders and the lines that mark views are never mentions. Names don't overlap; with coreference, other
        mentions of their clusters may stand beside them.

        Raises:
            DataError: if a text is longer than the pipeline reads.
        """
        from tqdm import tqdm

        limit = self._pipeline.max_length
        long = next((text for text in texts if len(text) > limit), None)
        if long is not None:
            raise DataError(f"the text {long[:40]!r}... has {len(long)} characters, spaCy reads {limit}: split it")
        documents = tqdm(self._pipeline.pipe(texts), "finding names", len(texts), unit="text", delay=0.5)
        return [self._mentions(document) for document in documents]

    def _mentions(self, document: Any) -> list[Mention]:
        names = list(_names(document))
        if self._coreference is None:
            return names
        tokens = [(token.idx, token.idx + len(token)) for token in document if not token.is_space]
        return with_clusters(document.text, names, self._coreference.clusters(document.text, tokens))


def _names(document: Any) -> Iterator[Mention]:
    blocked = protected(document.text)
    for entity in document.ents:
        kind = kind_of(entity.label_)
        if kind is None:
            continue
        for piece in outside((entity.start_char, entity.end_char), blocked):
            span = trimmed(document.text, piece, person=kind == "Character")
            if span is not None:
                yield Mention(*span, kind)


def open_spacy(pipeline: str, coref_model: str | None = None) -> SpacyNames:
    """Load a spaCy pipeline, as much of it as finds entities, and the coreference model if one is named.

    spaCy stays on the CPU, for its switch to the GPU holds for the whole process; the coreference model uses CUDA
    where there is one.

    Args:
        pipeline: an installed pipeline's name, or a folder. An entity ruler is as good as a recogniser.
        coref_model: fastcoref's, by hub id or folder; None: no coreference.

    Raises:
        MissingExtraError: where spaCy or fastcoref is absent.
        ModelError: if a model can't be loaded, or the pipeline finds no entities.
    """
    spacy = require("spacy", EXTRA)
    loaded = _load(spacy, pipeline)
    _keep_what_finds_entities(loaded, pipeline)
    return SpacyNames(loaded, None if coref_model is None else open_coreference(coref_model))


def _load(spacy: Any, pipeline: str) -> Any:
    local = Path(pipeline).exists()
    if not local and not spacy.util.is_package(pipeline):
        raise ModelError(
            f"the spaCy pipeline {pipeline} is not installed, and no folder: python -m spacy download {pipeline}"
        )
    try:
        return spacy.load(pipeline)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, ImportError, RuntimeError) as error:
        reason = next(iter(str(error).strip().splitlines()), type(error).__name__)
        mend = "name the folder of a whole pipeline" if local else f"python -m spacy download {pipeline}"
        raise ModelError(f"the spaCy pipeline {pipeline} can't be loaded ({reason}): {mend}") from error


def _keep_what_finds_entities(loaded: Any, name: str) -> None:
    """Turn off what is slow and not asked for: a parser, a tagger, a lemmatiser."""
    factories = {pipe: loaded.get_pipe_meta(pipe) for pipe in loaded.pipe_names}
    finders = {pipe for pipe, factory in factories.items() if "doc.ents" in factory.assigns}
    if not finders:
        pipes = ", ".join(loaded.pipe_names) or "no pipes"
        raise ModelError(f"the spaCy pipeline {name} finds no names: it has {pipes}; one with ner is needed")
    if not all(factories[pipe].factory in _RECOGNISERS for pipe in finders):
        # A ruler's patterns may ask for parts of speech or lemmas, which any other pipe may give.
        return
    needed = {pipe for pipe, factory in factories.items() if pipe in finders or factory.factory in _EMBEDDERS}
    loaded.select_pipes(enable=[pipe for pipe in loaded.pipe_names if pipe in needed])
