"""Small random models of the real architectures, with tokenizers trained on the spot."""

from pathlib import Path

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.models import Normalize, Pooling, Transformer
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import (
    BertConfig,
    BertModel,
    MPNetConfig,
    MPNetModel,
    PreTrainedTokenizerFast,
    Qwen3Config,
    Qwen3Model,
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
