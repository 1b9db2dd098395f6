"""Names from the entity recognizer of a spaCy pipeline, optionally with coreference clusters from F-coref.

Source of F-coref: Otmazgin, Cattan and Goldberg 2022.
"""

import logging
import random
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from tqdm import tqdm

from narrlit.errors import DataError, ModelError, reading
from narrlit.optional import require
from narrlit.preprocessing.mentions import (
    Mention,
    MentionFinder,
    Span,
    description_span,
    kind_of_label,
    name_spans,
)

MAX_COREF_CHARACTERS = 20_000
"""Number of characters that F-coref reads, because its memory grows quadratically; spaCy reads the whole text."""

_STATISTICAL = {"ner", "beam_ner"}
_EMBEDDERS = {"tok2vec", "transformer", "curated_transformer"}
# Beginning of the part of a mention after its head: "the king of France", "Anna, a nurse", "Bob who left".
_AFTER_HEAD = re.compile(
    r"\s*(?:[,;:(–—]|\s-\s|\b(?:of|in|at|from|on|with|by|for|to|who|whom|whose|which|that|where)\b)"
)
_SEVERAL = re.compile(r"\b(?:and|or|nor)\b|&")


def open_spacy(pipeline: str, coref_model: str | None, progress: bool, *, descriptions: bool = False) -> MentionFinder:
    """Load a spaCy pipeline and, optionally, an F-coref model.

    Args:
        pipeline: name or folder of the pipeline.
        coref_model: hub id or folder of the F-coref model; None: names are not linked.
        progress: show a progress bar on stderr.
        descriptions: also find the pronouns and descriptions in the coreference clusters of names.

    Returns:
        A function that finds the names in texts.

    Raises:
        ModelError: if the pipeline or the model can't be loaded.
    """
    language = _load_pipeline(pipeline)
    clusters = None if coref_model is None else _load_coreference(coref_model)

    def find(texts: Sequence[str], groups: Sequence[int]) -> list[list[Mention]]:
        _check_lengths(texts, language.max_length)
        documents = tqdm(language.pipe(texts), "names", len(texts), unit="text", delay=0.5, disable=not progress)
        mentions = [list(_mentions(document)) for document in documents]
        if clusters is None:
            return mentions
        linked = []
        for text, names, text_clusters in zip(texts, mentions, clusters(texts), strict=True):
            found = _linked(text, names, text_clusters)
            if descriptions:
                found += _descriptions(text, found, text_clusters)
            linked.append(found)
        return linked

    return find


def _check_lengths(texts: Sequence[str], limit: int) -> None:
    """Refuse a text of more characters than spaCy accepts."""
    for text in texts:
        if len(text) > limit:
            raise DataError("text_too_long_for_spacy", text=text[:40], characters=len(text), limit=limit)


def _mentions(document: Any) -> Iterator[Mention]:
    """Yield the names in the entities of a spaCy document."""
    for entity in document.ents:
        kind = kind_of_label(entity.label_)
        if kind is None:
            continue
        for start, end in name_spans(document.text, (entity.start_char, entity.end_char)):
            tokens = document.char_span(start, end, alignment_mode="expand")
            # At the beginning of a sentence, "However" and "The" are not names, but "US" and "WHO" are.
            if not all(token.is_stop and not token.is_upper for token in tokens):
                yield Mention(start, end, kind)


@lru_cache(maxsize=2)
def _load_pipeline(name: str) -> Any:
    """Load a spaCy pipeline, if possible only with the components that find entities."""
    spacy = require("spacy", "text")
    if not Path(name).exists() and not spacy.util.is_package(name):
        raise ModelError("missing_pipeline", name=name)
    with reading("broken_pipeline", name, error=ModelError):
        language = spacy.load(name)
    recognizers: set[str] = set()  # factories of the components that find entities
    needed = []  # these components, and those that compute vectors for them
    for pipe in language.pipe_names:
        meta = language.get_pipe_meta(pipe)
        if "doc.ents" in meta.assigns:
            recognizers.add(meta.factory)
            needed.append(pipe)
        elif meta.factory in _EMBEDDERS:
            needed.append(pipe)
    if not recognizers:
        raise ModelError("pipeline_without_entities", name=name)
    if recognizers <= _STATISTICAL:  # rules may need any other component
        language.select_pipes(enable=needed)
    return language


@lru_cache(maxsize=1)
def _load_coreference(model: str) -> Callable[[Sequence[str]], list[list[list[Span]]]]:
    """Load F-coref; each text is a batch of its own, because padding changes the predicted mentions."""
    spacy = require("spacy", "text")
    fastcoref = _import_fastcoref()
    with _unchanged_random_state(), reading("unloadable_coreference", model, error=ModelError):
        network = fastcoref.FCoref(model, nlp=spacy.blank("en"), enable_progress_bar=False)

    def clusters(texts: Sequence[str]) -> list[list[list[Span]]]:
        beginnings = [text[:MAX_COREF_CHARACTERS] for text in texts]
        predictions = network.predict(beginnings, max_tokens_in_batch=1) if beginnings else []
        return [_clusters(prediction) for prediction in predictions]

    return clusters


def _import_fastcoref() -> ModuleType:
    """Import fastcoref so that it works with transformers 5, and changes neither logging nor progress bars."""
    guard = logging.NullHandler()
    logging.getLogger().addHandler(guard)  # otherwise importing fastcoref configures the root logger
    try:
        fastcoref = require("fastcoref", "text", also="pip install --no-deps fastcoref")
        from fastcoref.coref_models.modeling_fcoref import FCorefModel
    finally:
        logging.getLogger().removeHandler(guard)
    import datasets

    FCorefModel.all_tied_weights_keys = {}  # transformers 5 expects this attribute
    datasets.disable_progress_bars()
    return fastcoref


@contextmanager
def _unchanged_random_state() -> Iterator[None]:
    """Restore the random state of Python, NumPy and torch after the block."""
    import torch

    python_state = random.getstate()
    numpy_state = np.random.get_state()
    try:
        with torch.random.fork_rng():
            yield
    finally:
        random.setstate(python_state)
        np.random.set_state(numpy_state)


def _clusters(prediction: Any) -> list[list[Span]]:
    """Return the clusters of an F-coref prediction, without spans that it could not locate in the text."""
    clusters = []
    for cluster in prediction.get_clusters(as_strings=False):
        clusters.append([span for span in cluster if span is not None])
    return clusters


def _linked(text: str, names: Sequence[Mention], clusters: Sequence[Sequence[Span]]) -> list[Mention]:
    """Assign names to coreference clusters.

    A name is in the cluster of the shortest mention of which it is the head. In "his wife Anna", the head is Anna;
    "Anna and Bob" has no head.
    """
    spans = []  # length, start, end and cluster, so that the shortest spans are sorted first
    for number, cluster in enumerate(clusters):
        spans += [(end - start, start, end, number) for start, end in cluster]
    cluster_of: dict[Span, int] = {}
    for _, start, end, number in sorted(spans):
        inside = [name for name in names if start <= name.start and name.end <= end]
        head = _head(text, start, end, inside)
        if head is not None:
            cluster_of.setdefault(head.span, number)
    return [replace(name, cluster=cluster_of.get(name.span)) for name in names]


def _descriptions(text: str, names: Sequence[Mention], clusters: Sequence[Sequence[Span]]) -> list[Mention]:
    """List the pronouns and descriptions in the clusters to which names are assigned."""
    name_spans = {name.span for name in names}
    named_clusters = {name.cluster for name in names}
    descriptions = []
    for number, cluster in enumerate(clusters):
        if number not in named_clusters:
            continue
        for mention in cluster:
            span = description_span(text, mention)
            if span is not None and span not in name_spans:
                descriptions.append(Mention(*span, None, number))
    return descriptions


def _head(text: str, start: int, end: int, names: Sequence[Mention]) -> Mention | None:
    """Find the head of the mention at characters `start` to `end`, among the names inside it; None if it has none."""
    mention = text[start:end]
    for name in names:  # mask names, since "University of London" is one name
        mask = "N" * (name.end - name.start)
        mention = mention[: name.start - start] + mask + mention[name.end - start :]
    after = _AFTER_HEAD.search(mention)
    if after is not None:
        mention = mention[: after.start()]
    mention = re.sub(r"['’]s?\Z", "", mention)
    if _SEVERAL.search(mention):
        return None
    head_end = start + len(mention)
    for name in names:
        if name.end == head_end:
            return name
    return None
