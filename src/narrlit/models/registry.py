"""Models by name: a folder, a run directory, a checkpoint, a promoted teacher, a hub id, `narrlit-mini` or `minilm`."""

from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from sentence_transformers.models import Dense

from narrlit.errors import ModelError, reading
from narrlit.models.checkpoint_files import read_checkpoint, without_prefix
from narrlit.models.checkpoints import find_checkpoint
from narrlit.models.config import EncoderConfig, Fusion, Long, Precision
from narrlit.models.encoder import Encoder
from narrlit.models.heads import InnerModel, SentenceBiLSTM, ViewFusion, build_head
from narrlit.models.packaged import NARRLIT_MINI, packaged_adapter
from narrlit.models.weights import CONFIG, load_saved


def load_encoder(
    source: str,
    *,
    trust_remote_code: bool = False,
    max_length: int | None = None,
    long: Long = "windows",
    precision: Precision | None = None,
) -> Encoder:
    """Load an encoder for inference: adapters are merged, unless the model is quantized.

    Args:
        source: a sentence-transformers folder, a run directory (its best checkpoint, else its last; for `runs/NAME`,
            the newest version), a checkpoint, the folder of a promoted teacher, a hub id, `narrlit-mini` or `minilm`.
        trust_remote_code: run Python files that come with the model.
        max_length: maximum number of tokens of a story, or of a sentence for models that read sentences; None: as in
            training, or the model's own.
        long: treatment of longer texts: read in windows, truncated or refused.
        precision: number format of computations: `bf16`, `fp32` or `auto`; None: the model's own.

    Raises:
        ModelError: if the model does not exist or can't be loaded.
        OptionError: for `bf16` on a processor without it.
    """
    encoder = load_unmerged(source, trust_remote_code=trust_remote_code, max_length=max_length)
    if not encoder.quantized:
        encoder.merge()
    encoder.long = long
    return encoder.eval().cast(precision)


def load_unmerged(source: str, *, trust_remote_code: bool = False, max_length: int | None = None) -> Encoder:
    """Load an encoder as it was trained: adapters are not merged.

    Args:
        source: the same as for `load_encoder`.
        trust_remote_code: run Python files that come with the model.
        max_length: maximum number of tokens of a story; None: as in training, or the model's own.

    Raises:
        ModelError: if the model does not exist or can't be loaded.
    """
    checkpoint = find_checkpoint(source)
    if checkpoint is not None:
        return _from_checkpoint(checkpoint, trust_remote_code, max_length)
    folder = packaged_adapter() if source == NARRLIT_MINI else Path(source)
    if (folder / CONFIG).is_file():
        return load_saved(folder, trust_remote_code=trust_remote_code, max_length=max_length)
    return _from_model(source, trust_remote_code, max_length)


def _from_model(source: str, trust_remote_code: bool, max_length: int | None) -> Encoder:
    """Load a sentence-transformers model from a folder or a hub, with its head if it is an exported folder with one."""
    folder = Path(source)
    head = _exported_head(folder)
    model = source if head is None else str(folder / "inner")
    # With normalize=None, the model's own files decide about normalization.
    config = EncoderConfig(model, normalize=None, max_length=max_length)
    encoder = Encoder(config, trust_remote_code=trust_remote_code)
    if head is not None:
        encoder.attach(head)
        for dense in folder.glob("*_Dense"):  # post-processing
            encoder.postprocess(Dense.load(str(dense)))
    return encoder


def with_fusion(encoder: Encoder, fusion: Fusion | None) -> Encoder:
    """Set the weights of an encoder's views, or add a fusion of views; trained heads remain. None: no change."""
    if fusion is None:
        return encoder
    if encoder.post is not None:
        raise ModelError("fusion_after_postprocessing")
    if encoder.views is None:
        encoder.attach(ViewFusion(encoder.dimension, asdict(fusion)).eval())
    else:
        encoder.views.fusion = asdict(fusion)
    return encoder


def _exported_head(folder: Path) -> InnerModel | None:
    """Load the head of an exported folder, with this package's code and not the folder's; None if it has no head."""
    if not (folder / "heads.py").is_file():
        return None

    with reading("broken_exported_model", folder, error=ModelError):
        kind = SentenceBiLSTM if (folder / SentenceBiLSTM.config_file_name).is_file() else ViewFusion
        return kind.load_head(folder)


def _from_checkpoint(path: Path, trust_remote_code: bool, max_length: int | None) -> Encoder:
    """Build the encoder of a checkpoint, with its head and its fusion of views."""
    content = read_checkpoint(path)
    with reading("checkpoint_of_other_release", path, error=ModelError):
        settings, weights = content.get("hyper_parameters", {}), content["state_dict"]
        if "encoder" not in settings:
            raise ModelError("checkpoint_without_encoder", path=path)
        config = EncoderConfig.from_dict(settings["encoder"])
        if max_length is not None:
            config = replace(config, max_length=max_length)
    encoder = Encoder(config, trust_remote_code=trust_remote_code)
    with reading("checkpoint_of_other_model", path, error=ModelError, model=config.model):
        if settings.get("head") is None:
            _load_trained(encoder, without_prefix(weights, "encoder."))
        else:
            head = build_head(**settings["head"])
            head.load_state_dict(without_prefix(weights, "head."))
            encoder.attach(head)
        if settings.get("views") is not None:
            views = ViewFusion(encoder.dimension, **settings["views"])
            views.load_state_dict(without_prefix(weights, "views.") if views.heads is not None else {})
            encoder.attach(views)
    return encoder


def _load_trained(encoder: Encoder, weights: Mapping[str, Any]) -> None:
    """Load the weights of a checkpoint, which may lack the frozen weights, into an encoder.

    Raises:
        ValueError: if a trained weight is missing, or the weights belong to another model.
    """
    trained = {name for name, parameter in encoder.named_parameters() if parameter.requires_grad}
    if encoder.config.quantization is not None:
        # Quantized weights can't be loaded over others, and are frozen.
        weights = {name: value for name, value in weights.items() if name in trained or ".lora_" in name}
    has_all_weights = encoder.config.lora is None and encoder.config.quantization is None
    try:
        result = encoder.load_state_dict(weights, strict=has_all_weights)
    except RuntimeError as error:
        raise ValueError("its weights do not match the model") from error
    wrong = trained.intersection(result.missing_keys) or result.unexpected_keys
    if wrong:
        raise ValueError(f"its weights do not match the model: {min(wrong)} is missing or unknown")
