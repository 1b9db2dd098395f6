"""Private names of transformers, checked with 5.9 to 5.23."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from transformers import PreTrainedModel


@contextmanager
def missing_weights(empty: bool) -> Iterator[set[str]]:
    """Collect the names of weights that transformers does not find for models loaded inside the block.

    With `empty`, it does not look for any: models are built on the meta device.

    sentence-transformers calls `from_pretrained` out of reach and drops its report of missing keys, hence another
    method in its place; an option of `SentenceTransformer` for the report, and one for the meta device, would replace
    this. The public `AutoModel.from_config` chooses the class itself, where here `from_pretrained` has it already.
    """
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


def forget_adapter(transformer: Any) -> None:
    """Make a model whose adapter was merged one that never had an adapter, so that it is saved as such.

    The public `delete_adapter` needs the adapted layers, and saved weights would keep the names of the adapter's file.
    """
    del transformer.peft_config
    transformer._hf_peft_config_loaded = False
    vars(transformer).pop("_weight_conversions", None)
