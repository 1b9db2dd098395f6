"""Folders with an adapter of each kind of peft: merged into plain weights that embed the same, or refused by name."""

import json
import shutil

import numpy as np
import peft
import pytest
import torch
from refusals import refused
from safetensors.torch import load_file, save_file
from sentence_transformers import SentenceTransformer
from tiny_models import world_texts

from narrlit.errors import ModelError
from narrlit.exporting.folders import write_model_folder
from narrlit.exporting.origin import Origin
from narrlit.models.config import EncoderConfig
from narrlit.models.embedding import embed_stories
from narrlit.models.encoder import Encoder
from narrlit.models.registry import load_encoder

TEXTS = world_texts()[:4]
SAME = 1e-6
"""Unit vectors in float32 from sums in another order differ by less than 4e-7."""
TARGETS = {"target_modules": ["query", "value", "intermediate.dense"]}
LORA = {"r": 4, "lora_alpha": 16}
NORMS = {"target_modules": ["LayerNorm"]}
TOKENS = {"token_indices": [5, 6, 7]}
MERGED = {
    "lora": ("LORA", {**LORA, **TARGETS}),
    "lora with biases": ("LORA", {**LORA, **TARGETS, "lora_bias": True}),
    "lora and the layers' biases": ("LORA", {**LORA, **TARGETS, "bias": "all"}),
    "dora": ("LORA", {**LORA, **TARGETS, "use_dora": True}),
    "rslora": ("LORA", {**LORA, **TARGETS, "use_rslora": True}),
    "lora of embeddings": ("LORA", {**LORA, "target_modules": ["query", "word_embeddings"]}),
    "dora of embeddings": ("LORA", {**LORA, "target_modules": ["query", "word_embeddings"], "use_dora": True}),
    "lora and tokens": ("LORA", {**LORA, **TARGETS, "trainable_token_indices": [5, 6]}),
    "lora and whole modules": ("LORA", {**LORA, **TARGETS, "modules_to_save": ["output.LayerNorm"]}),
    "adalora": ("ADALORA", {**TARGETS, "total_step": 10}),
    "ia3": ("IA3", {**TARGETS, "feedforward_modules": ["intermediate.dense"]}),
    "loha": ("LOHA", TARGETS),
    "lokr": ("LOKR", TARGETS),
    "oft": ("OFT", {**TARGETS, "oft_block_size": 4, "r": 0}),
    "fourierft": ("FOURIERFT", {**TARGETS, "n_frequency": 50}),
    "ln_tuning": ("LN_TUNING", NORMS),
    "trainable_tokens": ("TRAINABLE_TOKENS", TOKENS),
    "boft": ("BOFT", {**TARGETS, "boft_block_size": 4}),
    "hra": ("HRA", TARGETS),
    "miss": ("MISS", {**TARGETS, "r": 4}),
    "shira": ("SHIRA", {**TARGETS, "r": 2}),
    "c3a": ("C3A", {**TARGETS, "block_size": 4}),
    "road": ("ROAD", {**TARGETS, "group_size": 4}),
    "adamss": ("ADAMSS", TARGETS),
    "beft": ("BEFT", TARGETS),
    "deft": ("DEFT", TARGETS),
    "delora": ("DELORA", TARGETS),
    "glora": ("GLORA", TARGETS),
    "gralora": ("GRALORA", TARGETS),
    "hira": ("HIRA", TARGETS),
    "osf": ("OSF", TARGETS),
    "peanut": ("PEANUT", TARGETS),
    "psoft": ("PSOFT", TARGETS),
    "supertuning": ("SUPERTUNING", TARGETS),
    "waveft": ("WAVEFT", {**TARGETS, "n_frequency": 50}),
}
"""Kind in peft and its settings, by name."""
RARE = {"ADAMSS", "BEFT", "DEFT", "DELORA", "GLORA", "GRALORA", "HIRA", "OSF", "PEANUT", "PSOFT", "SUPERTUNING"}
REFUSED = {
    "replicated layers": ("LORA", {**LORA, **TARGETS, "layer_replication": [[0, 2], [1, 3]]}),
    "activated lora": ("LORA", {**LORA, **TARGETS, "alora_invocation_tokens": [5, 6]}),
    "frod": ("FROD", TARGETS),
    "pvera": ("PVERA", TARGETS),
    "tinylora": ("TINYLORA", TARGETS),
    "unilora": ("UNILORA", TARGETS),
    "vblora": ("VBLORA", {**TARGETS, "num_vectors": 8, "vector_length": 4, "topk": 2}),
    "vera": ("VERA", TARGETS),
    "poly": ("POLY", TARGETS),
    "xlora": ("XLORA", {"hidden_size": 32, "adapters": {}}),
    "shadow": ("SHADOW", {}),
    "prompt_tuning": ("PROMPT_TUNING", {"num_virtual_tokens": 4}),
    "multitask_prompt_tuning": ("MULTITASK_PROMPT_TUNING", {"num_virtual_tokens": 4}),
    "prefix_tuning": ("PREFIX_TUNING", {"num_virtual_tokens": 4}),
    "p_tuning": ("P_TUNING", {"num_virtual_tokens": 4}),
    "cpt": ("CPT", {"task_type": "CAUSAL_LM"}),
    "cartridge": ("CARTRIDGE", {"num_virtual_tokens": 4}),
    "adaption_prompt": ("ADAPTION_PROMPT", {"adapter_len": 4, "adapter_layers": 2}),
}
MERGED_OR_REFUSED = {"lily": ("LILY", TARGETS), "randlora": ("RANDLORA", {**TARGETS, "r": 4})}
"""Kinds that sentence-transformers can't save."""
KINDS = {kind.value: config for kind, config in peft.PEFT_TYPE_TO_CONFIG_MAPPING.items()}


def cases(table):
    """The cases of a table whose kind this release of peft has."""
    rows = []
    for name, (kind, settings) in table.items():
        if kind in KINDS:
            marks = [pytest.mark.slow] if kind in RARE else []
            rows.append(pytest.param(kind, settings, id=name, marks=marks))
    return pytest.mark.parametrize(("kind", "settings"), rows)


def drawn(transformer):
    """Draw the values of an adapter, far enough from those that change nothing."""
    torch.manual_seed(3)
    for parameter in transformer.parameters():
        if parameter.requires_grad and parameter.is_floating_point():
            parameter.data += 0.1 * torch.randn_like(parameter)


def adapted_folder(base, folder, kind, settings):
    """A folder with an adapter as sentence-transformers saves it, and the embeddings that it should give."""
    model = SentenceTransformer(base, device="cpu")
    plain = model.encode(TEXTS)
    model.add_adapter(KINDS[kind](**settings))
    drawn(model[0].model)
    expected = model.encode(TEXTS)
    assert np.abs(expected - plain).max() > 1e-4
    model.save(str(folder))
    return expected


def saved_folder(base, folder, kind, settings):
    """A folder with an adapter, saved by sentence-transformers if it can."""
    try:
        model = SentenceTransformer(base, device="cpu")
        model.add_adapter(KINDS[kind](**settings))
        model.save(str(folder))
    except ValueError:
        written_folder(base, folder, kind, settings)


def written_folder(
    base,
    folder,
    kind,
    settings,
):
    """A folder with an adapter that sentence-transformers can't add or save."""
    shutil.copytree(base, folder)
    for name in ("config.json", "model.safetensors"):
        (folder / name).unlink()
    KINDS[kind](**settings, base_model_name_or_path=base).save_pretrained(str(folder))
    save_file({"base_model.model.x": torch.zeros(1)}, folder / "adapter_model.safetensors")


def embedded(encoder):
    encoder.long = "truncate"
    return embed_stories(encoder, TEXTS, progress=False).embeddings


@cases(MERGED)
def test_an_adapter_is_merged_into_plain_weights_that_embed_the_same(tiny, tmp_path, kind, settings):
    expected = adapted_folder(tiny(), tmp_path / "adapted", kind, settings)
    encoder = load_encoder(str(tmp_path / "adapted"))
    write_model_folder(encoder, tmp_path / "out", Origin(trained=True))
    exported = SentenceTransformer(str(tmp_path / "out"), device="cpu")

    assert np.abs(exported.encode(TEXTS) - expected).max() < SAME
    assert not list((tmp_path / "out").rglob("adapter*"))
    plain = SentenceTransformer(tiny(), device="cpu")
    assert exported[0].model.state_dict().keys() == plain[0].model.state_dict().keys()
    assert not encoder.has_adapters
    assert all(parameter.requires_grad for name, parameter in encoder.named_parameters() if "pooler" not in name)


@cases(REFUSED)
def test_an_adapter_that_can_not_be_merged_is_refused_by_name(tiny, tmp_path, kind, settings):
    saved_folder(tiny(), tmp_path / "adapted", kind, settings)
    with pytest.raises(ModelError, match=rf"\b{kind}\b.*(can't be merged|peft must be able to merge)") as caught:
        load_encoder(str(tmp_path / "adapted"))
    assert "\n" not in str(caught.value)


@cases(MERGED_OR_REFUSED)
def test_an_adapter_that_only_peft_can_save_is_merged_or_refused_by_name(tiny, tmp_path, kind, settings):
    model = SentenceTransformer(tiny(), device="cpu")
    plain = model.encode(TEXTS)
    adapted = peft.get_peft_model(model[0].model, KINDS[kind](**settings))
    drawn(adapted)
    expected = model.encode(TEXTS)
    written_folder(tiny(), tmp_path / "adapted", kind, settings)
    adapted.save_pretrained(str(tmp_path / "adapted"))
    assert np.abs(expected - plain).max() > 1e-3
    try:
        encoder = load_encoder(str(tmp_path / "adapted"))
    except ModelError as error:
        assert kind in str(error)
    else:
        assert np.abs(embedded(encoder) - expected).max() < SAME


def test_every_kind_of_this_release_of_peft_is_tested():
    assert set(KINDS) <= {kind for table in (MERGED, REFUSED, MERGED_OR_REFUSED) for kind, _ in table.values()}


def test_an_adapter_of_a_decoder_is_merged(tiny, tmp_path):
    settings = {**LORA, "target_modules": ["q_proj", "embed_tokens"]}
    expected = adapted_folder(tiny("qwen3", "lasttoken"), tmp_path / "adapted", "LORA", settings)
    encoder = load_encoder(str(tmp_path / "adapted"))
    assert np.abs(embedded(encoder) - expected).max() < 1e-5


def test_an_adapter_without_one_of_its_weights_is_refused(tiny, tmp_path):
    adapted_folder(tiny(), tmp_path / "adapted", *MERGED["dora"])
    path = tmp_path / "adapted" / "adapter_model.safetensors"
    weights = load_file(path)
    removed = next(name for name in weights if "magnitude" in name)
    save_file({name: value for name, value in weights.items() if name != removed}, path)
    with refused("missing_weights", missing=1):
        load_encoder(str(tmp_path / "adapted"))


def test_an_adapter_without_its_base_model_is_refused(tiny, tmp_path):
    adapted_folder(tiny(), tmp_path / "adapted", *MERGED["lora"])
    path = tmp_path / "adapted" / "adapter_config.json"
    settings = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**settings, "base_model_name_or_path": str(tmp_path / "gone")}), encoding="utf-8")
    with refused("unloadable_adapter", kind="LORA"):
        load_encoder(str(tmp_path / "adapted"))


def test_an_adapter_is_not_merged_into_quantized_weights(tiny, tmp_path):
    pytest.importorskip("bitsandbytes")
    adapted_folder(tiny(), tmp_path / "adapted", *MERGED["lora"])
    with refused("quantized_adapter", kind="LORA"):
        Encoder(EncoderConfig(str(tmp_path / "adapted"), quantization="nf4"))


def test_an_adapter_in_half_precision_is_merged_in_float32(tiny, tmp_path):
    expected = adapted_folder(tiny(), tmp_path / "adapted", *MERGED["lora"])
    encoder = Encoder(EncoderConfig(str(tmp_path / "adapted"), dtype="bfloat16"))
    assert {parameter.dtype for parameter in encoder.transformer.parameters()} == {torch.bfloat16}
    cosines = (embedded(encoder.eval()) * expected).sum(axis=1)
    assert cosines.min() > 0.999
