"""Measures of similarity by name."""

from collections.abc import Callable
from os import PathLike, fspath

from narrlit.encoding.loading import load
from narrlit.encoding.story_encoder import StoryEncoder
from narrlit.encoding.story_texts import StoryTexts
from narrlit.errors import OptionError
from narrlit.measures.similarity import Cosine, Lexical, MeanMaxSimilarity, PassageSimilarity, Similarity
from narrlit.metrics.baselines import BASELINES
from narrlit.metrics.meanmax import MeanMax

MEANMAX = "meanmax:"
"""Prefix of a model's name: compare its embeddings of sentences."""
PASSAGES = "passages:"
"""Prefix of a model's name: match its embeddings of passages."""


def open_measure(
    name: str,
    load_encoder: Callable[[str], StoryEncoder] = load,
    meanmax: MeanMax = MeanMax(),
    texts: StoryTexts = StoryTexts(),
) -> Similarity:
    """Return the measure with the given name.

    Args:
        name: a baseline (`random`, `jaccard`, `tfidf`, `longer`), a model (run, folder, checkpoint, hub id, `minilm`),
            `meanmax:MODEL` or `passages:MODEL`.
        load_encoder: function that loads a model by its name.
        meanmax: settings of Mean-Max.
        texts: settings of how baselines read stories.

    Raises:
        ModelError: if there is no such model.
    """
    if name in BASELINES:
        return Lexical(name, texts)
    prefix = next((each for each in (MEANMAX, PASSAGES) if name.startswith(each)), "")
    model = name.removeprefix(prefix)
    if not model:
        raise OptionError(f"{prefix} needs a model behind it, such as {prefix}minilm")
    encoder = load_encoder(model)
    if prefix == PASSAGES:
        return PassageSimilarity(encoder)
    return MeanMaxSimilarity(encoder, meanmax) if prefix == MEANMAX else Cosine(encoder)


def measure_of(system: Similarity | StoryEncoder | str | PathLike[str]) -> Similarity:
    """Return the measure that a name stands for, the cosine of an encoder's vectors, or a measure itself."""
    if isinstance(system, str | PathLike):
        return open_measure(fspath(system))
    return Cosine(system) if isinstance(system, StoryEncoder) else system
