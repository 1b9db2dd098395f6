"""Loading of sentence-transformers models, with the settings of a config in place of the model's own."""

import json
import logging
import os
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.models import Normalize, Pooling, Transformer
from sentence_transformers.util import load_file_path
from torch import nn
from transformers.utils import logging as transformers_logging

from narrlit.compat.transformers import missing_weights
from narrlit.distributed import rank
from narrlit.errors import ModelError, OptionError, reading
from narrlit.models import adapters
from narrlit.models.config import UNLIMITED, EncoderConfig, Prompts, Role, remote_code_allowed
from narrlit.models.packaged import ADAPTED, model_folder

POOLING_NAMES = {"mean": "mean", "cls": "cls", "last": "lasttoken"}
STORY_PROMPT = "story"
PROMPT_NAMES: dict[Role, str] = {"anchor": "query", "candidate": "document", "story": STORY_PROMPT}
"""Name of each role's prompt in sentence-transformers."""
SAMPLE = "An old king had three sons, and the youngest set out to find the water of life."
"""Text by which models are checked when they are loaded."""
ADAPTER_SETTINGS = "adapter_config.json"
"""File with the settings of an adapter in the format of peft."""
LFS_POINTER = b"version https://git-lfs"


def load_model(config: EncoderConfig, trust_remote_code: bool = False, empty: bool = False) -> SentenceTransformer:
    """Load the model of a config on the CPU, quantized and with the config's settings, but without adapters.

    Args:
        config: settings, which override those in the model's files.
        trust_remote_code: run Python files that come with the model; `allow_remote_code` also permits this.
        empty: create the weights on the meta device, where they take no memory.

    Raises:
        ModelError: if the model can't be loaded or used.
        OptionError: for settings that the model does not support.
    """
    model = _read(config, trust_remote_code or remote_code_allowed(), empty)
    transformer = model[0].model
    adapters.prepare_quantized(transformer)
    _override_pooling(model, config)
    _override_normalization(model, config.normalize)
    model.prompts = _resolved(model.prompts, model.default_prompt_name, config.prompts)
    model.default_prompt_name = STORY_PROMPT
    if not model[1].include_prompt and any(model.prompts.values()):
        raise ModelError("pooling_excludes_prompts", model=config.model)
    _override_length(model, config)
    # Padding on the left would shift the positions of a text by the lengths of the others in its batch. An exported
    # folder keeps this side, for sentence-transformers.
    model[0].tokenizer.padding_side = "right"
    if config.dropout is not None:
        set_dropout(transformer, config.dropout)
    # No objective uses the pooler of BERT-like models; its parameters would be trainable, but never get a gradient.
    if getattr(transformer, "pooler", None) is not None:
        transformer.pooler.requires_grad_(False)
    if config.frozen_layers:
        _freeze_layers(transformer, config.frozen_layers)
    return model


def _freeze_layers(transformer: Any, share: float) -> None:
    """Freeze a transformer's embeddings, and a share of its layers from the lowest."""
    layers = adapters.transformer_layers(transformer)
    frozen = [getattr(transformer, "embeddings", transformer.get_input_embeddings())]
    frozen += layers[: int(share * len(layers))]
    # MPNet's embeddings of relative positions: every layer uses them, so their gradient would need the frozen layers.
    for name, module in transformer.named_modules():
        if name.endswith("relative_attention_bias"):
            frozen.append(module)
    for module in frozen:
        module.requires_grad_(False)


def _read(config: EncoderConfig, trust: bool, empty: bool) -> SentenceTransformer:
    """Load and check the model that a config names, with the settings of its own files.

    Raises:
        ModelError: if it can't be loaded, lacks weights, or is not a transformer with pooling.
    """
    folder = model_folder(config.model)
    quantization = adapters.quantization_options(config)
    if folder is not None:
        _check_files(config.model, folder)
    adapter = _adapter_file(config, folder)
    failure, facts = _failure_of(folder, adapter)
    with quiet(), reading(failure, config.model, error=ModelError, **facts), missing_weights(empty) as missing:
        model = _load(config, folder, trust, quantization, empty)
        is_adapted = hasattr(model[0], "model") and hasattr(model[0].model, "peft_config")
        if is_adapted and adapter is not None:
            missing.intersection_update(adapters.read_adapter(model[0].model, adapter.parent))
    _check_modules(model, config.model)
    if missing:
        raise ModelError("missing_weights", model=config.model, missing=len(missing), first=min(missing))
    if not empty and not quantization:
        with quiet(), reading(failure, config.model, error=ModelError, **facts):
            _check_embedding(model)
    if is_adapted:
        _merge_adapter(model, config.model)
    return model


def _adapter_file(config: EncoderConfig, folder: Path | None) -> Path | None:
    """Find the settings of a model's adapter, in its folder or among the files from a hub; None without an adapter."""
    if folder is not None:
        paths = (folder / ADAPTER_SETTINGS, folder / "0_Transformer" / ADAPTER_SETTINGS)
        return next((path for path in paths if path.is_file()), None)
    try:
        path = load_file_path(config.model, ADAPTER_SETTINGS, revision=config.revision)
    except (OSError, ValueError):
        return None
    return Path(path) if path else None


def _merge_adapter(model: SentenceTransformer, name: str) -> None:
    """Merge the adapter of a model into its weights; raise ModelError if that changes embeddings."""
    transformer = model[0].model
    settings = transformer.peft_config[adapters.ADAPTER]
    kind = settings.peft_type.value
    if adapters.is_quantized(transformer):
        raise ModelError("quantized_adapter", model=name, kind=kind)
    if getattr(settings, "layer_replication", None):
        raise ModelError("adapter_repeats_layers", model=name, kind=kind)
    texts = ["A story.", SAMPLE]
    with quiet(), reading("unmergeable_adapter", name, error=ModelError, kind=kind):
        before = model.encode(texts)
        adapters.merge_loaded(transformer)
        change = float(np.abs(model.encode(texts) - before).max() / np.abs(before).max())
    # Sums are in another order, and weights in half precision are rounded.
    if not change <= max(1e-4, 8 * torch.finfo(transformer.dtype).eps):
        raise ModelError("adapter_changes_embeddings", model=name, kind=kind, change=change)


def _failure_of(folder: Path | None, adapter: Path | None) -> tuple[str, dict[str, str]]:
    """Return the code and the values of the error if a model can't be loaded from a local folder (None: from a hub).

    Args:
        folder: the folder.
        adapter: settings of the model's adapter; None: it has none.
    """
    if adapter is not None:
        with reading("broken_adapter", adapter, error=ModelError):
            settings = json.loads(adapter.read_text(encoding="utf-8"))
            kind, base = settings.get("peft_type"), settings.get("base_model_name_or_path")
        return "unloadable_adapter", {"kind": str(kind), "base": str(base)}
    if folder is not None:
        return "incomplete_model", {}
    offline = os.environ.get("HF_HUB_OFFLINE", "") not in ("", "0")
    return ("no_such_model_offline" if offline else "no_such_model"), {}


def _load(
    config: EncoderConfig, folder: Path | None, trust: bool, quantization: Mapping[str, object], empty: bool
) -> SentenceTransformer:
    """Load a model with sentence-transformers, from a local folder or a hub; an empty one on the meta device."""
    model = SentenceTransformer(
        config.model if folder is None else str(folder),
        device="meta" if empty else "cpu",
        revision=config.revision,
        trust_remote_code=trust,
        local_files_only=folder is not None,
        model_kwargs={"dtype": getattr(torch, config.dtype), **quantization},
    )
    # Loading a quantized model needs a device map, which would otherwise restrict later moves.
    return model if empty else model.to("cpu")


def _check_files(model: str, folder: Path) -> None:
    """Raise ModelError for a folder that has only trained weights, or git-LFS pointers instead of weights."""
    if (folder / ADAPTED).is_file():
        raise ModelError("trained_weights_alone", model=model)
    for path in folder.rglob("*.safetensors"):
        with path.open("rb") as file:
            beginning = file.read(len(LFS_POINTER))
        if beginning == LFS_POINTER:
            raise ModelError("git_lfs_pointer", path=path)


def _check_modules(model: SentenceTransformer, name: str) -> None:
    """Raise ModelError for a model that does not begin with a transformer and a pooling."""
    if not (len(model) >= 2 and isinstance(model[0], Transformer) and isinstance(model[1], Pooling)):
        raise ModelError("unsupported_modules", model=name, modules=[type(module).__name__ for module in model])


def _check_embedding(model: SentenceTransformer) -> None:
    """Embed a text, to find damaged settings that are not noticed during loading.

    Raises:
        ValueError: if the dimension of the embedding differs from the model's settings.
    """
    dimension, expected = len(model.encode("A story.")), model.get_embedding_dimension()
    if dimension != expected:
        raise ValueError(f"its embeddings have {dimension} dimensions, but its settings say {expected}")


def _override_pooling(model: SentenceTransformer, config: EncoderConfig) -> None:
    """Replace a model's pooling by the config's, with a warning if its authors chose another one."""
    current = model[1].pooling_mode
    new = POOLING_NAMES.get(config.pooling or "", current)
    if new == current:
        return
    folder = model_folder(config.model)
    # Without this file, the pooling is the default of sentence-transformers, not the choice of the model's authors.
    chosen_by_authors = folder is None or (folder / "modules.json").is_file()
    if chosen_by_authors and rank() == 0:
        warnings.warn(
            f"encoder.pooling {config.pooling} replaces {config.model}'s own pooling ({current}); null keeps it",
            stacklevel=2,
        )
    model[1] = Pooling(model[1].embedding_dimension, new)


def _override_normalization(model: SentenceTransformer, normalize: bool | None) -> None:
    """Add or remove the normalization of embeddings at the model's end; None: no change."""
    if normalize is None:
        return
    # Only the last module: an exported post-processing contains another normalization.
    normalizes = isinstance(model[-1], Normalize)
    if normalizes and not normalize:
        del model[-1]
    elif normalize and not normalizes:
        model.append(Normalize())


def _resolved(saved: Mapping[str, str | None], default: str | None, prompts: Prompts) -> dict[str, str]:
    """Resolve the prompts, by their names in sentence-transformers: first the config's, then the model's own.

    Args:
        saved: prompts in the model's files.
        default: name of the saved prompt that is used by default, if any.
        prompts: prompts of the config.
    """
    story = prompts.story
    if story is None and default:
        story = saved.get(default)
    # A folder written by this package has a prompt named "story", and its other prompts are those of the roles. In
    # other models "query" and "document" are prompts for search, not for the comparison of stories: ignore them.
    by_role = saved if STORY_PROMPT in saved and prompts.story is None else {}
    anchor = by_role.get("query", story) if prompts.anchor is None else prompts.anchor
    candidate = by_role.get("document", story) if prompts.candidate is None else prompts.candidate
    return {"query": anchor or "", "document": candidate or "", STORY_PROMPT: story or ""}


def role_prompts(config: EncoderConfig) -> dict[Role, str]:
    """Read the prompt of each role without loading the model's weights.

    For a model that can't be found, such as one on another machine, these are the config's prompts.
    """
    folder = model_folder(config.model)
    settings: dict[str, Any] = {}
    if None in (config.prompts.story, config.prompts.anchor, config.prompts.candidate):
        settings = _saved_settings(config.model if folder is None else str(folder), config.revision)
    prompts = _resolved(settings.get("prompts") or {}, settings.get("default_prompt_name"), config.prompts)
    return {role: prompts[name] for role, name in PROMPT_NAMES.items()}


def _saved_settings(model: str, revision: str | None) -> dict[str, Any]:
    """Read a model's config_sentence_transformers.json; empty if it can't be found or read."""
    try:
        path = load_file_path(model, "config_sentence_transformers.json", revision=revision)
        settings: dict[str, Any] = json.loads(Path(path).read_text(encoding="utf-8")) if path else {}
    except (OSError, ValueError):
        return {}
    return settings


def _override_length(model: SentenceTransformer, config: EncoderConfig) -> None:
    """Set the maximum length in tokens; raise OptionError if the model does not support the config's."""
    transformer = model[0].model
    first = first_position(transformer)
    positions = getattr(transformer.config, "max_position_embeddings", -1)  # XLNet's is -1
    if config.max_length is None:
        own = model[0].max_seq_length
        limit = UNLIMITED if own is None else min(int(own), UNLIMITED)
        # sentence-transformers counts positions that no token can have.
        model[0].max_seq_length = min(limit, positions - first) if first else limit
        return
    minimum = model[0].tokenizer.num_special_tokens_to_add() + 1
    maximum = positions - first if positions > 0 else UNLIMITED
    if not minimum <= config.max_length <= maximum:
        raise OptionError(
            "max_length_of_model", max_length=config.max_length, model=config.model, least=minimum, most=maximum
        )
    model[0].max_seq_length = config.max_length


def first_position(transformer: Any) -> int:
    """Return the position id of a text's first token, which follows the padding index in models such as RoBERTa."""
    for name, module in transformer.named_modules():
        if name.endswith("position_embeddings") and getattr(module, "padding_idx", None) is not None:
            return int(module.padding_idx) + 1
    return 0


def set_dropout(transformer: Any, probability: float) -> None:
    """Set every dropout probability of a transformer, including those stored as numbers."""
    for module in transformer.modules():
        if isinstance(module, nn.Dropout):
            module.p = probability
        for name, value in vars(module).items():
            if "dropout" in name and isinstance(value, float):
                setattr(module, name, probability)


@contextmanager
def quiet() -> Iterator[None]:
    """Suppress progress bars and log messages of transformers and sentence-transformers."""
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

    had_progress_bars = transformers_logging.is_progress_bar_enabled()
    verbosity = transformers_logging.get_verbosity()
    logger = logging.getLogger("sentence_transformers")
    logger_level = logger.level
    transformers_logging.disable_progress_bar()
    transformers_logging.set_verbosity_error()
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        transformers_logging.set_verbosity(verbosity)
        logger.setLevel(logger_level)
        if had_progress_bars:
            transformers_logging.enable_progress_bar()
