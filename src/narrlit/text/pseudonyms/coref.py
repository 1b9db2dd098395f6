"""What refers to the same in a text, as fastcoref's F-coref says, joined with the names that spaCy finds.

Source: Otmazgin, Cattan and Goldberg 2022 (F-COREF). Its network is used and its `predict` is not: that one sets the
process's random seeds and its log, and what it says of a text changes a little with the texts beside it, since padding
competes with the words. Here each text goes by itself, cut into the tokens of the pipeline that finds the names, so
nothing is downloaded to cut it. The heads of mentions are found by English rules, as the model is English.
"""

import logging
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from narrlit.errors import ModelError
from narrlit.optional import require
from narrlit.text.pseudonyms.mentions import Mention
from narrlit.text.pseudonyms.spans import Span, protected, trimmed

MAX_PIECES = 4096
"""Word pieces of a text in which references are looked for: memory grows with their square. Names are found beyond."""

# What ends the part of an English mention that holds its head: "Anna, a nurse", "the king of France", "Bob who left".
_AFTER_HEAD = re.compile(
    r"\b(?:of|in|at|from|on|with|by|for|to|near|who|whom|whose|which|that|where|when|as)\b|[(–—]|\s-\s"
)
_COMMA = re.compile(r"[,;:]")
_SEVERAL = re.compile(r"\b(?:and|or|nor)\b|&")


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
            outputs = self._network(self._batch(ids), return_all_outputs=True)
        clusters = []
        for cluster in _chains(*(output.float().cpu().numpy() for output in outputs)):
            ends = [(of_words[first], of_words[last]) for first, last in cluster]
            spans = {(tokens[first][0], tokens[last][1]) for first, last in ends if None not in (first, last)}
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


def _chains(starts: Any, ends: Any, _: Any, scores: Any) -> list[list[Span]]:
    """Clusters of pieces (first, last): each candidate joins the earlier one that scores best, or none."""
    from fastcoref.utilities.util import create_clusters, create_mention_to_antecedent

    _, pairs = create_mention_to_antecedent(starts, ends, scores)
    return [[(int(first), int(last)) for first, last in cluster] for cluster in create_clusters(pairs)]


def with_clusters(text: str, names: Sequence[Mention], clusters: Sequence[Sequence[Span]]) -> list[Mention]:
    """Names with the number of their cluster, and the clusters' other mentions, by their place.

    A name is of the cluster whose mention it is the head of: in "his wife Anna, who left Rome" that is Anna, whose span
    stays her name alone. A mention that only holds a name ("the king of France", "Anna and Bob") is left out, for the
    name is another's; so is one that reaches into a part of a name or holds a placeholder. What remains (pronouns,
    descriptions, names that the pipeline missed) votes for no kind.

    Args:
        text: one text.
        names: its names; they don't overlap.
        clusters: what `Coreference.clusters` says of it.
    """
    blocked = protected(text)
    numbers: dict[Mention, int] = {}
    others: dict[Span, int] = {}
    numbered = [(span, number) for number, cluster in enumerate(clusters) for span in cluster]
    # Where two clusters claim a name, the closer mention is right.
    for marked, number in sorted(numbered, key=lambda entry: (entry[0][1] - entry[0][0], entry)):
        span = trimmed(text, marked)
        if span is None or any(_overlap(span, other) for other in blocked):
            continue
        touched = [name for name in names if _overlap(span, (name.start, name.end))]
        head = _head(text, span, touched)
        if head is not None:
            numbers.setdefault(head, number)
        elif not touched:
            others.setdefault(span, number)
    found = [replace(name, cluster=numbers.get(name)) for name in names]
    found += [Mention(*span, kind=None, cluster=number) for span, number in others.items()]
    return sorted(found, key=lambda mention: (mention.start, mention.end))


def _overlap(one: Span, other: Span) -> bool:
    return one[0] < other[1] and other[0] < one[1]


def _head(text: str, span: Span, names: Sequence[Mention]) -> Mention | None:
    """The name that a mention is headed by, if it is one."""
    start, end = span
    masked = text[start:end]
    for name in names:
        if name.start < start or name.end > end:
            return None
        # What stands inside a name, as in University of London, rules nothing outside.
        masked = masked[: name.start - start] + "N" * (name.end - name.start) + masked[name.end - start :]
    after = _AFTER_HEAD.search(masked)
    masked = masked[: after.start()] if after else masked
    if _SEVERAL.search(masked):
        return None
    part = _COMMA.split(masked, maxsplit=1)[0].rstrip()
    return next((name for name in names if name.end == start + len(part)), None)


def open_coreference(model: str) -> Coreference:
    """Load F-coref's network, in float32, onto CUDA where there is one, else the CPU.

    Weights are read from safetensors, or from a pickle that holds tensors alone; code that comes with a model never runs.

    Args:
        model: a hub's id or a folder.

    Raises:
        MissingExtraError: where fastcoref is absent.
        ModelError: where there is no such model, or it is no F-coref.
    """
    with _quiet():
        network_class = _network_class()
        import torch
        from transformers import AutoConfig, AutoTokenizer

        local = Path(model).is_dir()
        options: dict[str, Any] = {"trust_remote_code": False, "local_files_only": local}
        try:
            config = AutoConfig.from_pretrained(model, **options)
            if "max_segment_len" not in getattr(config, "coref_head", {}):
                raise ModelError(f"the coreference model {model} is no F-coref: its config has no coref_head")
            tokenizer = AutoTokenizer.from_pretrained(model, add_prefix_space=True, **options)
            with torch.random.fork_rng():
                network, report = network_class.from_pretrained(
                    model,
                    config=config,
                    dtype=torch.float32,
                    weights_only=True,
                    output_loading_info=True,
                    local_files_only=local,
                )
        except (OSError, ValueError, KeyError, ImportError, RuntimeError) as error:
            reason = next(iter(str(error).strip().splitlines()), type(error).__name__)
            place = "the folder can't be loaded" if local else "there is no such folder, and the hub did not give it"
            raise ModelError(f"the coreference model {model}: {place} ({reason})") from error
    _check(model, report, tokenizer)
    return Coreference(network.to("cuda" if torch.cuda.is_available() else "cpu"), tokenizer)


def _check(model: str, report: dict[str, Any], tokenizer: Any) -> None:
    # The head reads the last layer, never the pooler, which some checkpoints lack.
    missing = sorted(name for name in report["missing_keys"] if ".pooler." not in name)
    if missing:
        raise ModelError(f"the coreference model {model} is no F-coref: it has no weights for {missing[0]}")
    if not tokenizer.is_fast:
        raise ModelError(f"the coreference model {model} has a tokenizer that can't say which word a piece is of")


def _network_class() -> Any:
    """F-coref's network, made fit for transformers 5, which asks each model for the weights that it ties."""
    root, also = logging.getLogger(), "pip install datasets && pip install --no-deps fastcoref"
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
