"""Every architecture gives a text the same embedding alone, in any batch, and by sentence-transformers."""

import functools

import numpy as np
import pytest
import torch
from adapted_encoders import packed, vectors
from refusals import refused
from sentence_transformers import SentenceTransformer
from sentence_transformers.models import Pooling
from tiny_models import ARCHITECTURES, WIDTH, WITHOUT_POSITIONS, world_texts, write_architecture

from narrlit.errors import ModelError
from narrlit.exporting.backends import check_exportable
from narrlit.exporting.folders import write_model_folder
from narrlit.exporting.origin import Origin
from narrlit.models import weights
from narrlit.models.config import UNLIMITED, EncoderConfig
from narrlit.models.embedding import embed_stories
from narrlit.models.encoder import Encoder

SAME = 1e-5
"""Unit vectors in float32 whose sums are in another order differ by less than 1e-6."""
MIXES_PADDING = {"fnet"}
TOKENIZERS = {
    "right": {"side": "right"},
    "left": {"side": "left"},
    "unlimited": {"side": "left", "limit": None},
    "without offsets": {"side": "left", "limit": 100, "offsets": False},
}
BY_NAME = {"modernbert"}
"""Architectures for which transformers loads fast tokenizers only."""
MODELS = [
    (kind, name) for kind in ARCHITECTURES for name in TOKENIZERS if not (kind in BY_NAME and name == "without offsets")
]
EXPORTED = ("left", "without offsets")
TEXTS = [world_texts()[0][:40], world_texts()[1][:400], "One.", world_texts()[2][:150]]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """Folders of the models, each written when it is first needed."""
    folder = tmp_path_factory.mktemp("architectures")

    @functools.cache
    def written(kind, tokenizer):
        return write_architecture(folder / f"{kind} {tokenizer}", kind, **TOKENIZERS[tokenizer])

    return written


def loaded(folder, **settings):
    encoder = Encoder(EncoderConfig(folder, normalize=None, dropout=0.0, **settings)).eval()
    encoder.long = "windows"
    return encoder


@pytest.mark.parametrize(("kind", "tokenizer"), MODELS)
def test_a_text_has_one_embedding_alone_and_in_every_batch(kind, tokenizer, model):
    folder = model(kind, tokenizer)
    encoder = loaded(folder)
    theirs = SentenceTransformer(folder, device="cpu")
    theirs.max_seq_length = min(encoder.max_length, theirs.max_seq_length)
    assert encoder.mixes_padding == (kind in MIXES_PADDING)

    for pooling in ("cls", "lasttoken", "mean"):
        encoder.model[1] = theirs[1] = Pooling(WIDTH, pooling_mode=pooling)
        expected = torch.cat([theirs.encode([text], convert_to_tensor=True) for text in TEXTS])
        together = vectors(encoder, TEXTS)
        assert (together - expected).abs().max() < SAME, pooling
        assert (together[0] - together[1]).abs().max() > 1e-2, pooling  # texts are told apart

    with torch.no_grad():  # as an objective embeds a batch
        assert (encoder.train()(packed(encoder, TEXTS)) - expected).abs().max() < SAME

    alone = np.concatenate([embed_stories(encoder.eval(), [text], progress=False).embeddings for text in TEXTS])
    assert np.abs(embed_stories(encoder, TEXTS, progress=False).embeddings - alone).max() < SAME


@pytest.mark.parametrize(("kind", "tokenizer"), [(kind, name) for kind, name in MODELS if name in EXPORTED])
def test_sentence_transformers_gives_the_same_for_an_exported_folder(kind, tokenizer, model, tmp_path):
    encoder = loaded(model(kind, tokenizer))
    expected = vectors(encoder, TEXTS)
    write_model_folder(encoder, tmp_path / "out", Origin(trained=True))
    exported = SentenceTransformer(str(tmp_path / "out"), device="cpu")
    size = 1 if kind in MIXES_PADDING else 32

    assert (exported.encode(TEXTS, batch_size=size, convert_to_tensor=True) - expected).abs().max() < SAME
    assert ("batch_size=1" in (tmp_path / "out" / "README.md").read_text(encoding="utf-8")) == (size == 1)


@pytest.mark.parametrize("kind", ARCHITECTURES)
def test_a_model_is_as_long_as_its_positions(kind, model):
    encoder = loaded(model(kind, "unlimited"))
    longest = {"roberta": 128, "mpnet": 128}.get(kind, UNLIMITED if kind in WITHOUT_POSITIONS else 130)
    ids, _ = encoder.tokenize([TEXTS[1]])

    assert encoder.max_length == longest
    assert len(ids[0]) == longest or longest == UNLIMITED
    assert torch.isfinite(vectors(encoder, [TEXTS[1]])).all()


@pytest.mark.parametrize("kind", ["bert", "t5", "gpt2"])
def test_windows_without_offsets_are_those_with_offsets(kind, model):
    """Bytes are the same tokens in a sentence alone and in the text, so the windows begin at the same sentences."""
    encoder = loaded(model(kind, "without offsets"))
    text = "A king fell ill. His three sons rode out.\n\n" * 8
    ids = encoder.token_ids([text])[0]
    windows, added = encoder.windows(text)
    special = encoder.model[0].tokenizer.num_special_tokens_to_add()

    assert sum(added) == len(ids) - special
    assert max(map(len, windows)) <= 100
    for window in windows:
        decoded = encoder.model[0].tokenizer.decode(window, skip_special_tokens=True)
        assert decoded.startswith(("A king", "His three"))
        assert window[-1] == encoder.model[0].tokenizer.eos_token_id


def test_models_that_mix_padding_are_refused_where_padding_can_not_be_avoided(model, monkeypatch):
    folder = model("fnet", "right")
    with pytest.raises(ModelError, match="padding changes the embeddings of fnet"):
        check_exportable(loaded(folder), folder)

    monkeypatch.setattr(weights, "shard_head", lambda *_: pytest.fail("sharded"))
    with refused("sharded_padding"):
        weights.build_encoder(EncoderConfig(folder), mesh=object())


def test_a_model_that_reads_more_than_tokens_is_refused(model, monkeypatch):
    folder = model("xlnet", "right")
    monkeypatch.setattr(Encoder, "_special_token_types", lambda _: {})
    with refused("unsupported_architecture", type="xlnet"):
        loaded(folder)


@pytest.mark.parametrize("kind", ["gpt2", "fnet"])
def test_the_shortest_maximum_length_can_be_given(kind, model):
    encoder = loaded(model(kind, "left"), max_length=3)
    assert vectors(encoder, TEXTS).shape == (len(TEXTS), WIDTH)
