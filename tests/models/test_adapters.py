"""LoRA: which layers get adapters, what trains, and that merging, saving and reloading keep the vectors."""

import json
import math

import pytest
import torch
from adapted_encoders import adapted, gradients, move, packed, vectors
from refusals import refused
from sentence_transformers import SentenceTransformer
from tiny_models import world_texts
from torch import nn
from transformers import MPNetModel

from narrlit.exporting.folders import write_model_folder
from narrlit.exporting.origin import Origin
from narrlit.models.config import EncoderConfig, LoRA
from narrlit.models.encoder import Encoder
from narrlit.models.text_tokens import token_chunks
from narrlit.models.weights import trained_weights

pytestmark = pytest.mark.usefixtures("run_seed")

QWEN3 = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
BERT = ["query", "key", "value", "attention.output.dense", "intermediate.dense", "output.dense"]
KINDS = [("qwen3", "lasttoken"), ("bert", "mean"), ("mpnet", "mean")]


@pytest.mark.parametrize(("kind", "names"), [("qwen3", QWEN3), ("bert", BERT)])
def test_all_linear_selects_layers_but_not_the_pooler(tiny, kind, names):
    encoder = adapted(tiny, kind, {"qwen3": "lasttoken"}.get(kind, "mean"))
    found = [name for name, module in encoder.transformer.named_modules() if hasattr(module, "lora_A")]
    assert len(found) == 3 * len(names)
    endings = tuple(f".{name}" for name in names)
    assert all(name.endswith(endings) for name in found)
    assert not any("pooler" in name for name in found)
    assert encoder.has_adapters
    assert not Encoder(EncoderConfig(tiny(kind))).has_adapters


@pytest.mark.parametrize("names", ["value", ["query", "output.dense"]])
def test_target_modules_can_be_named(tiny, names):
    encoder = adapted(tiny, "bert", "mean", lora=LoRA(rank=2, target_modules=names))
    found = {name.split(".", 3)[3] for name, m in encoder.transformer.named_modules() if hasattr(m, "lora_A")}
    every = {"value": {"attention.self.value"}}.get(
        str(names), {"attention.self.query", "attention.output.dense", "output.dense"}
    )

    assert found == every


def test_an_unknown_target_module_is_refused_with_the_available_names(tiny):
    with refused("unknown_target_modules", ending="q_proj") as caught:
        adapted(tiny, "bert", "mean", lora=LoRA(target_modules=["query", "q_proj"]))
    assert "pooler" not in str(caught.value)


@pytest.mark.parametrize(("kind", "pooling"), KINDS)
def test_new_adapters_do_not_change_embeddings_and_only_they_train(tiny, kind, pooling):
    texts = world_texts()[:3]
    plain = Encoder(EncoderConfig(tiny(kind, pooling)))
    encoder = adapted(tiny, kind, pooling)

    assert torch.allclose(vectors(plain, texts), vectors(encoder, texts), atol=1e-6)

    trained = {name for name, p in encoder.named_parameters() if p.requires_grad}
    assert trained
    assert all(".lora_" in name for name in trained)

    before = {name: p.detach().clone() for name, p in encoder.named_parameters()}
    found = gradients(encoder.train(), texts)
    assert found.keys() == trained
    assert all(found[name].abs().sum() > 0 for name in trained if ".lora_B." in name)

    torch.optim.SGD([p for p in encoder.parameters() if p.requires_grad], lr=1.0).step()
    changed = {name for name, p in encoder.named_parameters() if not torch.equal(p, before[name])}
    assert changed == {name for name in trained if ".lora_B." in name}  # A moves once B is off zero


def test_gradients_of_adapters_match_the_formula(tiny):
    """Against W + (alpha / r) BA written into the plain model: dL/dB = factor dL/dW A^T, dL/dA = factor B^T dL/dW."""
    texts = world_texts()[:4]
    encoder = move(adapted(tiny)).train()
    ours = gradients(encoder, texts)
    plain = Encoder(EncoderConfig(tiny("qwen3", "lasttoken"))).train()
    weights = dict(encoder.named_parameters())
    products = {}
    for name in [n.removesuffix(".lora_A.default.weight") for n in weights if n.endswith(".lora_A.default.weight")]:
        a, b = (weights[f"{name}.lora_{x}.default.weight"].detach() for x in "AB")
        products[name] = (a, b)
        with torch.no_grad():
            plain.get_parameter(f"{name}.weight").add_(8 / 4 * b @ a)

    theirs = gradients(plain, texts)

    assert len(ours) == 2 * 3 * len(QWEN3)
    assert all(gradient.abs().sum() > 0 for gradient in ours.values())

    for name, (a, b) in products.items():
        gradient = theirs[f"{name}.weight"] * 8 / 4
        assert torch.allclose(ours[f"{name}.lora_B.default.weight"], gradient @ a.T, atol=1e-5), name
        assert torch.allclose(ours[f"{name}.lora_A.default.weight"], b.T @ gradient, atol=1e-5), name


def test_left_padded_right_padded_and_packed_batches_give_the_same_embeddings(tiny):
    texts = [world_texts()[0][:20], *world_texts()[1:4], "One."]
    found = [vectors(move(adapted(tiny)), texts)]
    for side in ("left", "right"):
        encoder = move(adapted(tiny, packed=False))
        encoder.model[0].tokenizer.padding_side = side
        found.append(vectors(encoder, texts))

    assert torch.allclose(found[0], found[1], atol=1e-5)
    assert torch.allclose(found[0], found[2], atol=1e-5)


@pytest.mark.parametrize("is_packed", [True, False])
@pytest.mark.parametrize(("kind", "pooling", "lora"), [("qwen3", "lasttoken", 4), ("bert", "mean", 4)])
def test_gradient_checkpointing_gives_the_same_gradients(tiny, kind, pooling, lora, is_packed):
    texts = world_texts()[:4]
    found = []
    for checkpointed in (False, True):
        chosen = LoRA(rank=lora, alpha=8, dropout=0.3) if lora else None
        fields = {"lora": chosen, "packed": is_packed, "gradient_checkpointing": checkpointed, "dropout": 0.2}
        encoder = move(adapted(tiny, kind, pooling, **fields)).train()
        layers = [m for m in encoder.transformer.modules() if getattr(m, "gradient_checkpointing", False)]
        assert bool(layers) == checkpointed
        seen = []
        layer = encoder.transformer.get_submodule("layers.1" if kind == "qwen3" else "encoder.layer.1")
        next(m for m in layer.modules() if isinstance(m, nn.Linear)).register_forward_hook(lambda *_: seen.append(1))  # noqa: B023
        torch.manual_seed(5)
        found.append(gradients(encoder, texts))
        assert len(seen) == 1 + checkpointed  # run again on the way back

    plain, again = found

    assert plain.keys() == again.keys()
    assert plain
    assert all(torch.allclose(plain[name], again[name], atol=1e-6) for name in plain)


@pytest.mark.parametrize(("kind", "is_packed"), [("bert", True), ("mpnet", False), ("qwen3", True)])
def test_gradient_caching_gives_the_same_gradients(tiny, kind, is_packed):
    texts, found = world_texts()[:6], []
    for cached in (False, True):
        fields = {"packed": is_packed, "gradient_caching": cached, "dropout": 0.3, "token_budget": 120}
        encoder = Encoder(EncoderConfig(tiny(kind, "mean"), **fields)).train()
        runs = []
        encoder.model[0].register_forward_pre_hook(lambda *_: runs.append(1))  # noqa: B023
        torch.manual_seed(5)
        found.append(gradients(encoder, texts))
        passes = len(token_chunks(packed(encoder, texts).lengths, 120, padded=not is_packed))
        assert passes > 2
        assert len(runs) == passes * (1 + cached)

    plain, again = found

    assert plain.keys() == again.keys()
    assert sum(gradient.abs().sum() for gradient in plain.values()) > 1
    assert all(torch.allclose(plain[name], again[name], atol=1e-6) for name in plain)


@pytest.mark.parametrize(("kind", "pooling"), KINDS)
def test_merging_gives_plain_layers_and_the_same_embeddings(tiny, kind, pooling):
    texts = world_texts()[:4]
    encoder = move(adapted(tiny, kind, pooling))
    before = vectors(encoder, texts)

    assert not torch.allclose(before, vectors(Encoder(EncoderConfig(tiny(kind, pooling))), texts), atol=1e-3)

    encoder.merge()
    assert torch.allclose(vectors(encoder, texts), before, atol=1e-5)
    assert not encoder.has_adapters

    plain = Encoder(EncoderConfig(tiny(kind, pooling)))
    assert encoder.state_dict().keys() == plain.state_dict().keys()
    assert all(type(m) is nn.Linear for m in encoder.transformer.modules() if isinstance(m, nn.Linear))

    encoder.merge()
    assert torch.allclose(vectors(encoder, texts), before, atol=1e-5)


def test_adapters_can_be_added_and_merged_where_transformers_asks_for_another_peft(tiny, monkeypatch):
    # As transformers 5.24 does with peft 0.21.2, the newest when both are installed.
    monkeypatch.setattr("transformers.integrations.peft.MIN_PEFT_VERSION", "99.0")
    encoder = move(adapted(tiny))
    before = vectors(encoder, world_texts()[:3])

    encoder.merge()

    assert torch.allclose(vectors(encoder, world_texts()[:3]), before, atol=1e-5)


def test_an_export_has_the_adapters_merged_and_loads_without_this_package(tiny, tmp_path):
    texts = world_texts()[:4]
    encoder = move(adapted(tiny))
    before = vectors(encoder, texts)
    write_model_folder(encoder, tmp_path / "out", Origin(trained=True))
    theirs = SentenceTransformer(str(tmp_path / "out"), device="cpu").encode(texts, convert_to_tensor=True)

    assert torch.allclose(theirs, before, atol=1e-5)
    assert not list((tmp_path / "out").rglob("adapter_*"))


def test_adapters_are_float32_and_merge_into_the_base_dtype(tiny):
    encoder = move(adapted(tiny, dtype="bfloat16"))
    dtypes = {".lora_" in name: p.dtype for name, p in encoder.named_parameters()}
    assert dtypes == {True: torch.float32, False: torch.bfloat16}

    texts = world_texts()[:3]
    before = vectors(encoder, texts)
    encoder.merge()

    assert {p.dtype for p in encoder.parameters()} == {torch.bfloat16}
    assert torch.cosine_similarity(before.float(), vectors(encoder, texts).float()).min() > 0.999


def test_adapters_have_a_dropout_of_their_own(tiny):
    encoder = adapted(tiny, "bert", "mean", dropout=0.25, lora=LoRA(rank=2, dropout=0.5))
    found = {
        ".lora_dropout." in f".{n}": m.p for n, m in encoder.transformer.named_modules() if isinstance(m, nn.Dropout)
    }

    assert found == {True: 0.5, False: 0.25}

    off = adapted(tiny, "bert", "mean", dropout=0.25, lora=LoRA(rank=2, dropout=0.0))
    assert {m.p for m in off.transformer.modules() if isinstance(m, nn.Dropout)} == {0.25}


def test_adapters_depend_on_the_seed_and_leave_the_random_state_unchanged(tiny, monkeypatch):
    def drawn(seed):
        monkeypatch.setenv("PL_GLOBAL_SEED", str(seed))
        torch.manual_seed(seed * 2 + len(made))
        before = torch.get_rng_state()
        made.append(trained_weights(adapted(tiny)))
        assert torch.equal(torch.get_rng_state(), before)
        return {name: value for name, value in made[-1].items() if ".lora_A." in name}

    made = []
    one = drawn(3)
    same = drawn(3)
    other = drawn(4)

    assert all(torch.equal(one[name], same[name]) for name in one)
    assert not any(torch.equal(one[name], other[name]) for name in one)

    values = list(one.values())
    assert not torch.equal(values[0], values[1])
    assert all(value.abs().max() <= math.sqrt(1 / value.shape[1]) for value in values)


def test_an_architecture_without_gradient_checkpointing_is_refused(tiny):
    assert not MPNetModel.supports_gradient_checkpointing
    with refused("no_gradient_checkpointing", type="mpnet"):
        Encoder(EncoderConfig(tiny("mpnet"), gradient_checkpointing=True))


def test_a_config_can_be_restored_from_plain_data():
    config = EncoderConfig("x", lora=LoRA(rank=3, target_modules=["query"]), quantization="nf4")
    assert EncoderConfig.from_dict(json.loads(json.dumps(config.as_dict()))) == config
    assert EncoderConfig.from_dict({"model": "x", "lora": None}) == EncoderConfig("x")
