"""Small random models of the real architectures, with tokenizers trained on the spot."""

import functools

import torch

from narrlit.data.storyworld import StoryWorld


@functools.cache
def world_texts(count=12):
    triples = StoryWorld(3).triples(count)
    return [story.text for t in triples for story in (t.anchor, t.positive, t.negative)]


def trained_tokenizer(kind):
    """A byte-level BPE tokenizer with the special tokens and the padding side of its kind."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

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
    from transformers import (
        BertConfig,
        BertModel,
        MPNetConfig,
        MPNetModel,
        Qwen3Config,
        Qwen3Model,
        XLMRobertaConfig,
        XLMRobertaModel,
    )

    torch.manual_seed(0)
    shape = {
        "hidden_size": 32,
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
