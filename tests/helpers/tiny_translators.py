"""Small random translation models of the real classes, with tokenizers trained on the spot."""

import json
from pathlib import Path

import torch
from tiny_models import world_texts

POSITIONS = 40
SHAPE = {
    "d_model": 32,
    "encoder_layers": 1,
    "decoder_layers": 1,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 48,
    "decoder_ffn_dim": 48,
    "max_position_embeddings": POSITIONS,
    "init_std": 0.5,
}


def _save(model, tokenizer, folder):
    """Random weights repeat one token for ever: here no pair comes twice."""
    config = model.generation_config
    config.min_length = 8
    config.no_repeat_ngram_size = 2
    config.bad_words_ids = [[tokenizer.pad_token_id]]
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


def tiny_marian(folder, seed=0, ends=7.0, codes=()):
    """The folder of a Marian model like Helsinki-NLP's: two SentencePiece models, one vocabulary, pad at its end."""
    import sentencepiece
    from transformers import MarianConfig, MarianMTModel, MarianTokenizer

    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    pieces = []
    for name, size in (("source", 300), ("target", 260)):
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(world_texts()), model_prefix=str(folder / name), vocab_size=size, minloglevel=2
        )
        (folder / f"{name}.model").rename(folder / f"{name}.spm")
        (folder / f"{name}.vocab").unlink()
        processor = sentencepiece.SentencePieceProcessor(model_file=str(folder / f"{name}.spm"))
        pieces += [processor.id_to_piece(place) for place in range(processor.get_piece_size())]
    known = ["</s>", "<unk>", *codes, *(piece for piece in pieces if piece not in ("<s>", "</s>", "<unk>")), "<pad>"]
    vocabulary = {piece: place for place, piece in enumerate(dict.fromkeys(known))}
    (folder / "vocab.json").write_text(json.dumps(vocabulary))
    files = [str(folder / name) for name in ("source.spm", "target.spm", "vocab.json")]
    tokenizer = MarianTokenizer(*files, source_lang="en", target_lang="fr", model_max_length=POSITIONS)
    pad = vocabulary["<pad>"]
    torch.manual_seed(seed)
    ids = {"pad_token_id": pad, "decoder_start_token_id": pad, "eos_token_id": 0, "forced_eos_token_id": 0}
    model = MarianMTModel(MarianConfig(vocab_size=len(vocabulary), **ids, **SHAPE))
    model.final_logits_bias[0, 0] = ends  # older releases allow no sequence_bias of token 0
    return _save(model, tokenizer, folder)


def tiny_nllb(folder, codes=("eng_Latn", "fra_Latn", "rus_Cyrl"), ends=7.0):
    """The folder of an NLLB model that knows these languages."""
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers
    from transformers import M2M100Config, M2M100ForConditionalGeneration, NllbTokenizer

    trained = Tokenizer(models.BPE(unk_token="<unk>"))
    trained.pre_tokenizer = pre_tokenizers.Metaspace()
    names = ["<s>", "<pad>", "</s>", "<unk>"]
    trained.train_from_iterator(world_texts(), trainers.BpeTrainer(vocab_size=300, special_tokens=names))
    kept = json.loads(trained.to_str())["model"]
    merges = [tuple(pair) for pair in kept["merges"]]
    known = {"extra_special_tokens": list(codes), "src_lang": "eng_Latn", "model_max_length": POSITIONS}
    tokenizer = NllbTokenizer(vocab=kept["vocab"], merges=merges, **known)
    torch.manual_seed(0)
    ids = {"bos_token_id": 0, "pad_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 2}
    model = M2M100ForConditionalGeneration(M2M100Config(vocab_size=len(tokenizer), **ids, **SHAPE))
    model.generation_config.sequence_bias = [[[tokenizer.eos_token_id], ends]]
    return _save(model, tokenizer, folder)


def short_texts(count=9):
    """Different beginnings of invented sentences, of one to nine words."""
    stories = dict.fromkeys(text for text in world_texts())
    return [" ".join(text.split()[: 1 + 4 * place % 9]) for place, text in zip(range(count), stories, strict=False)]
