"""Small random models of the real architectures, with tokenizers trained on the spot."""

import functools
from pathlib import Path

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.models import Normalize, Pooling, Transformer
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import (
    AutoConfig,
    AutoModel,
    BertConfig,
    BertModel,
    ByT5Tokenizer,
    MPNetConfig,
    MPNetModel,
    PreTrainedTokenizerFast,
    Qwen3Config,
    Qwen3Model,
    T5EncoderModel,
    XLMRobertaConfig,
    XLMRobertaModel,
)

from narrlit.data.storyworld import StoryWorld

WIDTH = 32


def world_texts(count=12):
    """Texts of StoryWorld: anchor, positive and negative of each of `count` triples."""
    texts = []
    for triple in StoryWorld(3).triples(count):
        texts += [triple.anchor.text, triple.positive.text, triple.negative.text]
    return texts


class TinyModels:
    """Folders of tiny sentence-transformers models, one for each architecture and pooling.

    A model is written when it is first needed and read by all later tests: none may change it.
    """

    def __init__(self, folder: Path):
        self.folder = folder

    def __call__(self, kind="bert", pooling="mean"):
        """Return the folder of a model; kind is bert, roberta, mpnet or qwen3, pooling as sentence-transformers'."""
        path = self.folder / f"{kind}-{pooling}" / "model"
        if not path.exists():
            write_tiny_model(path, kind, pooling)
        return str(path)


@torch.random.fork_rng(devices=[])  # which test builds a model first is no matter to what the others draw
def write_tiny_model(path, kind, pooling):
    """Write a model with random weights, always the same."""
    torch.manual_seed(20)
    base = path.parent / "base"
    tokenizer = trained_tokenizer(kind)
    tiny_transformer(kind, tokenizer).save_pretrained(base)
    tokenizer.save_pretrained(base)

    transformer = Transformer(str(base), max_seq_length=96)
    modules = [transformer, Pooling(WIDTH, pooling_mode=pooling), Normalize()]
    SentenceTransformer(modules=modules, device="cpu").save(str(path))


class DistinctModels:
    """Folders of tiny models that tell stories apart; of random ones all embeddings are nearly equal.

    Their word embeddings, drawn by a seed, outweigh all else. Written when first needed and read-only, as TinyModels.
    """

    def __init__(self, tiny: TinyModels, folder: Path):
        self.tiny = tiny
        self.folder = folder

    def __call__(self, seed=0, kind="bert"):
        """Return the folder of the model with word embeddings of this seed."""
        path = self.folder / f"{kind}-{seed}" / "model"
        if not path.exists():
            self.write(path, seed, kind)
        return str(path)

    def write(self, path, seed, kind):
        model = SentenceTransformer(self.tiny(kind), device="cpu")
        words = model[0].model.get_input_embeddings().weight
        with torch.no_grad():
            words.copy_(torch.randn(words.shape, generator=torch.Generator().manual_seed(seed)))
        model.save(str(path))


def trained_tokenizer(kind):
    """A byte-level BPE tokenizer with the special tokens and the padding side of its kind."""
    names = {
        "bert": ["[PAD]", "[UNK]", "[CLS]", "[SEP]"],
        "roberta": ["<s>", "<pad>", "</s>", "<unk>"],
        "mpnet": ["<s>", "<pad>", "</s>", "<unk>"],
        "qwen3": ["<|pad|>", "<|end|>"],
    }[kind]
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(world_texts(), trainers.BpeTrainer(vocab_size=600, special_tokens=names))
    first, last = {"bert": ("[CLS]", "[SEP]"), "qwen3": ("", "<|end|>")}.get(kind, ("<s>", "</s>"))
    ids = [(name, tokenizer.token_to_id(name)) for name in (first, last) if name]
    tokenizer.post_processor = processors.TemplateProcessing(single=f"{first} $A {last}".strip(), special_tokens=ids)
    pad = next(name for name in names if "pad" in name.lower())
    side = "left" if kind == "qwen3" else "right"
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token=pad, padding_side=side, model_max_length=128, eos_token=last
    )


@torch.random.fork_rng(devices=[])
def write_multilingual_model(folder):
    """Write a random model of XLM-R's architecture that tells stories of all scripts apart; return its folder.

    Each character of Unicode's first 65,536 is a token, normalized as those of XLM-R.
    """
    names = ["<s>", "<pad>", "</s>", "<unk>"]
    characters = [chr(code) for code in range(0x21, 0xFFFF) if not 0xD800 <= code <= 0xDFFF]
    tokenizer = Tokenizer(models.Unigram([(token, -1.0) for token in names + characters], unk_id=3))
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    ids = [(name, number) for number, name in enumerate(names)]
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A </s>", special_tokens=ids)
    special = {"bos_token": "<s>", "pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>"}
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=512, **special)
    torch.manual_seed(4)
    shape = {**SIZES, "vocab_size": len(fast), "pad_token_id": 1, "max_position_embeddings": 520}
    transformer = XLMRobertaModel(XLMRobertaConfig(**shape))
    torch.nn.init.normal_(transformer.get_input_embeddings().weight)
    transformer.save_pretrained(folder / "base")
    fast.save_pretrained(folder / "base")
    modules = [Transformer(str(folder / "base")), Pooling(WIDTH, pooling_mode="mean"), Normalize()]
    SentenceTransformer(modules=modules, device="cpu").save(str(folder / "model"))
    return str(folder / "model")


def tiny_transformer(kind, tokenizer):
    """A random transformer of three layers for the tokenizer's vocabulary."""
    torch.manual_seed(0)
    shape = {
        "hidden_size": WIDTH,
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
        "intermediate_size": 48,
        "vocab_size": len(tokenizer),
        "pad_token_id": tokenizer.pad_token_id,
    }
    if kind == "qwen3":
        return Qwen3Model(Qwen3Config(**shape, num_key_value_heads=2, head_dim=8, max_position_embeddings=512)).float()
    classes = {
        "bert": (BertConfig, BertModel),
        "roberta": (XLMRobertaConfig, XLMRobertaModel),
        "mpnet": (MPNetConfig, MPNetModel),
    }
    config, model = classes[kind]
    return model(config(**shape, max_position_embeddings=160))


SIZES = {"hidden_size": WIDTH, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48}
T5 = {"d_model": WIDTH, "d_kv": 8, "d_ff": 48, "num_layers": 2, "num_heads": 4}
ARCHITECTURES = {
    "bert": SIZES,
    "roberta": SIZES,
    "mpnet": SIZES,
    "deberta": SIZES,
    "deberta-v2": {**SIZES, "relative_attention": True, "pos_att_type": ["p2c", "c2p"]},
    "electra": {**SIZES, "embedding_size": 24},
    "modernbert": {**SIZES, "local_attention": 8, "global_attn_every_n_layers": 2, "cls_token_id": 0},
    "t5": T5,
    "gpt2": {"n_embd": WIDTH, "n_layer": 2, "n_head": 4},
    "llama": SIZES,
    "qwen3": {**SIZES, "num_key_value_heads": 2, "head_dim": 8},
    "xlnet": {"d_model": WIDTH, "n_layer": 2, "n_head": 4, "d_inner": 48},
    "fnet": SIZES,
}
"""Sizes of small models by `model_type`."""
WITHOUT_POSITIONS = ("t5", "xlnet")
"""Architectures without a limit of length."""
DECODERS = ("t5", "gpt2", "llama", "qwen3")
"""Architectures without a token at the beginning of a text."""


@functools.cache
def tokenizer_of(kind, side="right", limit=128, offsets=True):
    """A tokenizer that pads on this side and has this maximum length; none may change it. Without offsets: Python."""
    options = {"padding_side": side, **({} if limit is None else {"model_max_length": limit})}
    if not offsets:
        return ByT5Tokenizer(**options)
    special = {"bos_token": "<s>", "pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>"}
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=500, special_tokens=list(special.values()))
    tokenizer.train_from_iterator(world_texts(), trainer)
    template = {"xlnet": "$A:0 </s>:0 <s>:2", **dict.fromkeys(DECODERS, "$A </s>")}.get(kind, "<s> $A </s>")
    tokenizer.post_processor = processors.TemplateProcessing(single=template, special_tokens=[("<s>", 0), ("</s>", 2)])
    if kind == "xlnet":  # which distinguishes the last token by its type
        options["model_input_names"] = ["input_ids", "token_type_ids", "attention_mask"]
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **special, **options)


@torch.random.fork_rng(devices=[])
def write_architecture(folder, kind, pooling="mean", **tokenizer_options):
    """Write a random sentence-transformers model of an architecture whose word order and padding matter; return it."""
    torch.manual_seed(3)
    tokenizer = tokenizer_of(kind, **tokenizer_options)
    ids = {"pad_token_id": tokenizer.pad_token_id, "eos_token_id": tokenizer.eos_token_id, "bos_token_id": 0}
    positions = {} if kind in WITHOUT_POSITIONS else {"max_position_embeddings": 130}
    config = AutoConfig.for_model(kind, **{**ARCHITECTURES[kind], **ids, **positions, "vocab_size": len(tokenizer)})
    transformer = T5EncoderModel(config) if kind == "t5" else AutoModel.from_config(config)
    for parameter in transformer.float().parameters():
        if parameter.ndim > 1:
            torch.nn.init.normal_(parameter, std=0.3)
    transformer.save_pretrained(folder / "base")
    tokenizer.save_pretrained(folder / "base")
    modules = [Transformer(str(folder / "base")), Pooling(WIDTH, pooling_mode=pooling), Normalize()]
    SentenceTransformer(modules=modules, device="cpu").save(str(folder / "model"))
    return str(folder / "model")
