"""narrlit's models for MTEB: an encoder with the interface that MTEB calls, and its metadata."""

from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import torch
from torch import Tensor

from narrlit.data.schema import FloatArray, Floats
from narrlit.encoding.loading import load
from narrlit.encoding.options import Device
from narrlit.encoding.story_encoder import StoryEncoder
from narrlit.errors import OptionError
from narrlit.exporting.origin import Origin
from narrlit.models.config import Long, Precision, Role
from narrlit.models.packaged import model_folder
from narrlit.optional import require

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mteb.abstasks.task_metadata import TaskMetadata
    from mteb.models.model_meta import ModelMeta
    from mteb.types import PromptType

CODE = "https://github.com/narrlit/narrlit"
REVISION_LENGTH = 12
MIB = 2**20


class MtebModel:
    """Encoder with the interface of MTEB (`EncoderProtocol`), created by `narrlit.mteb_model`.

    Attributes:
        encoder: encoder that embeds the texts.
        mteb_model_meta: metadata of the model.
    """

    def __init__(self, encoder: StoryEncoder, meta: "ModelMeta") -> None:
        self.encoder = encoder
        self.mteb_model_meta = meta

    def encode(
        self,
        inputs: "Iterable[Mapping[str, Any]]",
        *,
        task_metadata: "TaskMetadata",
        hf_split: str,
        hf_subset: str,
        prompt_type: "PromptType | None" = None,
        **options: Any,
    ) -> FloatArray:
        """Embed the texts of all batches, (N, D); queries are read as anchors, documents as candidates.

        Args:
            inputs: batches, each with a list `text`.
            task_metadata: metadata of the task; not used.
            hf_split: split of the data set; not used.
            hf_subset: subset of the data set; not used.
            prompt_type: role of the texts; None: the task has no roles.
            options: options of sentence-transformers, such as the size of batches; not used.
        """
        texts: list[str] = []
        for batch in inputs:
            texts += batch["text"]
        roles: dict[str | None, Role] = {"query": "anchor", "document": "candidate"}
        role = roles.get(None if prompt_type is None else prompt_type.value, "story")
        return self.encoder.embed(texts, role)

    def similarity(self, embeddings1: Floats | Tensor, embeddings2: Floats | Tensor) -> Tensor:
        """Compute the cosines of all pairs, (N, M), in double precision as `narrlit.evaluate` does."""
        return _unit(embeddings1) @ _unit(embeddings2).T

    def similarity_pairwise(self, embeddings1: Floats | Tensor, embeddings2: Floats | Tensor) -> Tensor:
        """Compute the cosine of each row with the same row of the other embeddings, (N,)."""
        return (_unit(embeddings1) * _unit(embeddings2)).sum(-1)


def mteb_model(encoder: str | PathLike[str] | StoryEncoder, *, name: str | None = None) -> MtebModel:
    """Return a model with the interface of MTEB, for `mteb.evaluate` and `narrlit.evaluate_mteb`.

    Its metadata, `.mteb_model_meta`, is the `ModelMeta` that MTEB writes next to results and lists on its leaderboard.
    The revision is a digest of all settings that affect an embedding. License, base model and size are stated as far as
    they are recorded; what the model was trained on is left open, so that no result counts as zero-shot.

    Args:
        encoder: a model (run, folder, checkpoint, hub id, `minilm`), or an encoder from `narrlit.load`.
        name: name of the model, OWNER/NAME; None: that on the hub, or narrlit/NAME.

    Raises:
        MissingExtraError: if MTEB is not installed.
        ModelError: if the model can't be loaded.
        OptionError: if the name is not OWNER/NAME.
    """
    require("mteb", "mteb")
    encoder = encoder if isinstance(encoder, StoryEncoder) else load(encoder)
    encoder = encoder.fitted_for([])
    chosen = name or _default_name(encoder.name)
    if chosen.count("/") != 1:
        raise OptionError("name_for_mteb", name=chosen)
    return MtebModel(encoder, _model_meta(encoder, chosen))


def _model_meta(encoder: StoryEncoder, name: str) -> "ModelMeta":
    """Collect the metadata of a model."""
    meta_class = require("mteb.models.model_meta", "mteb").ModelMeta
    module = encoder.module
    origin = Origin.of(encoder.name, module.config.model)
    parameters = list(module.parameters())
    memory = sum(parameter.numel() * parameter.element_size() for parameter in parameters)
    other_base_models = [base for base in origin.base_model if base != name]
    loading = encoder.loading
    settings = {"long": loading.long, "max_length": loading.max_length, "precision": loading.precision}
    can_load = encoder.is_plain and not loading.trust_remote_code
    meta: ModelMeta = meta_class(
        loader=_load if can_load else None,
        loader_kwargs={"model": encoder.name, **settings},
        name=name,
        revision=encoder.fingerprint[:REVISION_LENGTH],
        release_date=None,
        languages=None,
        n_parameters=sum(parameter.numel() for parameter in parameters),
        memory_usage_mb=round(memory / MIB),
        max_tokens=encoder.facts.max_length,
        embed_dim=encoder.dimension,
        license=_license(origin),
        open_weights=None,
        public_training_code=CODE if origin.trained else None,
        public_training_data=None,
        framework=["PyTorch", "Sentence Transformers"],
        similarity_fn_name="cosine",
        use_instructions=any(encoder.facts.prompts.values()),
        training_datasets=None,
        adapted_from=other_base_models[0] if other_base_models else None,
        experiment_kwargs=settings,
    )
    return meta


def _license(origin: Origin) -> str | None:
    """Return the recorded license of a model if it is among those that MTEB accepts."""
    accepted = get_args(require("mteb.types", "mteb").Licenses)
    recorded = None if origin.license is None else origin.license["license"]
    return recorded if recorded in accepted else None


def _load(
    name: str,
    revision: str | None = None,
    device: Device | None = None,
    *,
    model: str,
    long: Long,
    max_length: int | None,
    precision: Precision | None,
) -> MtebModel:
    """Load a model from its metadata, as MTEB does; `model` is its name for `narrlit.load`."""
    encoder = load(model, long=long, max_length=max_length, precision=precision, device=device or "auto")
    return mteb_model(encoder, name=name)


def _default_name(model: str) -> str:
    """Return the name on the hub, or narrlit/NAME for a local model.

    >>> _default_name("minilm"), _default_name("intfloat/e5-small")
    ('narrlit/minilm', 'intfloat/e5-small')
    """
    is_on_hub = "/" in model and model_folder(model) is None
    return model if is_on_hub else f"narrlit/{Path(model).name}"


def _unit(embeddings: Floats | Tensor) -> Tensor:
    """Normalize embeddings (N, D), or one embedding (D,), in double precision."""
    vectors = torch.as_tensor(embeddings).double()
    return torch.nn.functional.normalize(vectors.reshape(-1, vectors.shape[-1]), dim=-1)
