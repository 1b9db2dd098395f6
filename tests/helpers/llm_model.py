"""A tiny random Qwen2 that answers chats, its JSON held to a schema by llguidance."""

import json
from copy import deepcopy

import torch
from llm_server import schema_of
from tiny_models import world_texts

LONGEST = {"string": ("maxLength", 24), "array": ("maxItems", 6)}


def json_tokenizer():
    """A byte-level BPE tokenizer that knows every byte, so that any JSON can be written."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=600, special_tokens=["<|end|>"], initial_alphabet=alphabet)
    tokenizer.train_from_iterator(world_texts(), trainer)
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<|end|>")


class TinyLLM:
    """reply_of for an LLMServer: words without sense, but sound JSON."""

    def __init__(self):
        import llguidance.hf
        from transformers import Qwen2Config, Qwen2ForCausalLM

        torch.manual_seed(0)
        self.tokenizer = json_tokenizer()
        config = Qwen2Config(
            hidden_size=32,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
            intermediate_size=48,
            vocab_size=len(self.tokenizer),
            max_position_embeddings=4096,
        )
        self.model = Qwen2ForCausalLM(config).eval()
        self.llguidance = llguidance.hf.from_tokenizer(self.tokenizer, n_vocab=config.vocab_size)

    @torch.inference_mode()
    def __call__(self, body):
        from llguidance.torch import allocate_token_bitmask, apply_token_bitmask_inplace, fill_next_token_bitmask

        generator = torch.Generator().manual_seed(body.get("seed", 0))
        text = "\n".join(message["content"] for message in body["messages"])
        given = self.tokenizer(text, return_tensors="pt", add_special_tokens=False).input_ids[:, -512:]
        matcher = self.matcher(schema_of(body))
        mask = allocate_token_bitmask(1, len(self.tokenizer))
        tokens, cache = [], None
        while len(tokens) < body["max_tokens"] and not (matcher and matcher.is_stopped()):
            step = self.model(given, past_key_values=cache, use_cache=True)
            cache, logits = step.past_key_values, step.logits[:, -1]
            if matcher is not None:
                fill_next_token_bitmask(matcher, mask, 0)
                apply_token_bitmask_inplace(logits, mask)
            given = self.drawn(logits, body.get("temperature", 1.0), generator)
            token = int(given)
            if token == self.tokenizer.eos_token_id:
                break
            tokens.append(token)
            if matcher is not None:
                assert matcher.consume_token(token), matcher.get_error()
        return self.tokenizer.decode(tokens)

    def matcher(self, schema):
        from llguidance import LLMatcher

        if schema is None:
            return None
        guide = {**bounded(schema), "x-guidance": {"whitespace_flexible": False}}
        grammar = LLMatcher.grammar_from_json_schema(json.dumps(guide))
        return LLMatcher(self.llguidance, grammar)

    @staticmethod
    def drawn(logits, temperature, generator):
        if temperature == 0:
            return logits.argmax(-1, keepdim=True)
        return torch.multinomial(torch.softmax(logits / temperature, -1), 1, generator=generator)


def bounded(schema):
    """The schema with an end to every string and list: a random model would hardly end them."""
    schema = deepcopy(schema)
    name, most = LONGEST.get(schema.get("type"), (None, 0))
    if name is not None and "enum" not in schema:
        schema.setdefault(name, most)
    for entry in (schema.get("properties") or {}).values():
        entry.update(bounded(entry))
    if "items" in schema:
        schema["items"] = bounded(schema["items"])
    return schema
