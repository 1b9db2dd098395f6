"""What refers to the same in a text, as fastcoref's F-coref says.

Source: Otmazgin, Cattan and Goldberg 2022 (F-COREF). Its network is used and its `predict` is not: that one sets the
process's random seeds and its log, and what it says of a text depends on the texts beside it, since padding competes
with words to be a mention. Here each text goes by itself, cut into the tokens of the pipeline that finds the names, so
nothing is downloaded to cut it.
"""

import logging
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from pickle import UnpicklingError  # raised where a pickle is refused; none is made here
from typing import Any

from narrlit.errors import ModelError
from narrlit.optional import require
from narrlit.text.pseudonyms.spans import Span

MAX_PIECES = 4096
"""Word pieces of a text in which references are looked for: memory grows with their square. Names are found beyond."""
_HEAD = ("max_segment_len", "max_span_length", "top_lambda", "ffnn_size", "dropout_prob")


class Coreference:
    """A loaded coreference model: it says which parts of a text refer to the same."""

    def __init__(self, network: Any, tokenizer: Any) -> None:
        """Nothing is read yet.

        Args:
            network: an `FCorefModel`, on its device.
            tokenizer: its tokenizer, one of those that know which word a piece is of.
        """
        self._network = network.eval()
        self._tokenizer = tokenizer
        self._segment = int(network.config.coref_head["max_segment_len"])

    def clusters(self, text: str, tokens: Sequence[Span]) -> list[list[Span]]:
        """Clusters of two places or more that refer to the same, by their first place; places in order.

        Args:
            text: one text.
            tokens: where its words and signs stand.
        """
        import torch

        if not tokens:
            return []
        words = [text[start:end] for start, end in tokens]
        encoded = self._tokenizer(words, is_split_into_words=True, return_attention_mask=False, verbose=False)
        ids, of_words = encoded["input_ids"][:MAX_PIECES], encoded.word_ids()
        with torch.inference_mode():
            starts, ends, _, scores = self._network(self._batch(ids), return_all_outputs=True)
        clusters = []
        for cluster in _chains(starts.cpu().numpy(), ends.cpu().numpy(), scores.cpu().numpy()):
            places = [(of_words[first], of_words[last]) for first, last in cluster]
            spans = {(tokens[first][0], tokens[last][1]) for first, last in places if None not in (first, last)}
            clusters.append(sorted(spans))
        return sorted(cluster for cluster in clusters if len(cluster) > 1)

    def _batch(self, ids: Sequence[int]) -> dict[str, Any]:
        """One text as the network reads it: segments (1, segments, length), and the last where it is shorter."""
        import torch

        device = self._network.device
        whole = len(ids) // self._segment * self._segment or len(ids)
        segments = torch.tensor(ids[:whole], device=device).view(1, -1, min(self._segment, whole))
        rest = torch.tensor([ids[whole:]], device=device) if whole < len(ids) else torch.empty(0, device=device)
        leftovers = {"input_ids": rest, "attention_mask": torch.ones_like(rest)}
        return {"input_ids": segments, "attention_mask": torch.ones_like(segments), "leftovers": leftovers}


def _chains(starts: Any, ends: Any, scores: Any) -> list[list[Span]]:
    """Clusters of pieces (first, last): each candidate joins the earlier one that scores best, or none.

    Args:
        starts: first pieces (1, candidates), in order.
        ends: last pieces (1, candidates).
        scores: (1, candidates, candidates + 1) of joining each earlier one; the last is for none.
    """
    from fastcoref.utilities.util import create_clusters, create_mention_to_antecedent

    _, pairs = create_mention_to_antecedent(starts, ends, scores)
    return [[(int(first), int(last)) for first, last in cluster] for cluster in create_clusters(pairs)]


def open_coreference(model: str) -> Coreference:
    """Load F-coref's network, in float32, onto CUDA where there is one, else the CPU.

    Weights are read from safetensors, or from a pickle of tensors alone; code that comes with a model never runs.

    Args:
        model: a hub's id or a folder.

    Raises:
        MissingExtraError: where fastcoref is absent.
        ModelError: where there is no such model, or it is no F-coref.
    """
    with _quiet():
        network_class = _network_class()
        import torch
        from safetensors import SafetensorError

        try:
            network, tokenizer = _read(network_class, model)
        except UnpicklingError as error:
            reason = "its weights are broken, or hold more than tensors, which is never read"
            raise ModelError(f"the coreference model {model} can't be loaded: {reason}") from error
        except (OSError, ValueError, KeyError, ImportError, RuntimeError, SafetensorError) as error:
            reason = next(iter(str(error).strip().splitlines()), type(error).__name__)
            local = Path(model).is_dir()
            place = "the folder can't be loaded" if local else "there is no such folder, and the hub did not give it"
            raise ModelError(f"the coreference model {model}: {place} ({reason})") from error
    return Coreference(network.to("cuda" if torch.cuda.is_available() else "cpu"), tokenizer)


def _read(network_class: Any, model: str) -> tuple[Any, Any]:
    """The network and its tokenizer, checked."""
    import torch
    from transformers import AutoConfig, AutoTokenizer

    local = Path(model).is_dir()
    options: dict[str, Any] = {"trust_remote_code": False, "local_files_only": local}
    config = AutoConfig.from_pretrained(model, **options)
    absent = [field for field in _HEAD if field not in (getattr(config, "coref_head", None) or {})]
    if absent:
        raise ModelError(f"the coreference model {model} is no F-coref: its config's coref_head has no {absent[0]}")
    tokenizer = AutoTokenizer.from_pretrained(model, add_prefix_space=True, **options)
    # Without its files, transformers makes a tokenizer that knows the special signs alone.
    if not tokenizer.is_fast or len(tokenizer) <= len(tokenizer.all_special_ids):
        raise ModelError(f"the coreference model {model} has no tokenizer of use: its tokenizer.json is needed")
    # Weights that a checkpoint lacks are drawn at random: what the process draws next is kept from depending on it.
    with torch.random.fork_rng(devices=[]):
        network, report = network_class.from_pretrained(
            model,
            config=config,
            dtype=torch.float32,
            weights_only=True,
            output_loading_info=True,
            local_files_only=local,
        )
    # The head reads the last layer, never the pooler, which some checkpoints lack.
    missing = sorted(name for name in report["missing_keys"] if ".pooler." not in name)
    if missing:
        raise ModelError(f"the coreference model {model} is no F-coref: it has no weights for {missing[0]}")
    return network, tokenizer


def _network_class() -> Any:
    """F-coref's network, made fit for transformers 5, which asks each model for the weights that it ties."""
    root, also = logging.getLogger(), "pip install --no-deps fastcoref"
    # On import it would set up the process's log; where one is set up, that does nothing.
    guard = logging.NullHandler()
    root.addHandler(guard)
    try:
        for package in ("spacy", "datasets", "fastcoref"):
            require(package, "text", also)
        network_class = require("fastcoref.coref_models.modeling_fcoref", "text", also).FCorefModel
    finally:
        root.removeHandler(guard)
    network_class.all_tied_weights_keys = {}
    return network_class


@contextmanager
def _quiet() -> Iterator[None]:
    """No loading bars; and no request to the hub that a model be converted, which transformers sends for pickles."""
    from transformers.utils import logging as library

    name = "DISABLE_SAFETENSORS_CONVERSION"
    bars, level, before = library.is_progress_bar_enabled(), library.get_verbosity(), os.environ.get(name)
    library.disable_progress_bar()
    library.set_verbosity_error()
    os.environ[name] = "1"
    try:
        yield
    finally:
        library.set_verbosity(level)
        if bars:
            library.enable_progress_bar()
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before
