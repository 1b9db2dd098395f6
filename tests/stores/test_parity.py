"""Another encoder, another order, another truncation: told by comparing with known vectors."""

import json

import numpy as np
import pytest
from embedding_server import embedding_server, hashed_vector, wrong_order

from narrlit.commands.embed import write_embeddings
from narrlit.errors import DataError, ModelError
from narrlit.stores.endpoint import Endpoint, EndpointOptions
from narrlit.stores.parity import check_parity, read_known

TEXTS = [f"story {i}" for i in range(7)]
KNOWN = np.array([hashed_vector(text) for text in TEXTS])


def hashed(texts):
    return np.array([hashed_vector(text) for text in texts], dtype=np.float32)


def test_the_same_encoder_passes_whatever_the_lengths():
    assert check_parity(lambda texts: 3 * hashed(texts), TEXTS, KNOWN, "known") == pytest.approx(1)


def test_the_smallest_cosine_comes_back():
    noise = np.random.default_rng(0).standard_normal(KNOWN.shape) * 0.02
    by_hand = [
        float(a @ b / (np.linalg.norm(a) * np.linalg.norm(b))) for a, b in zip(KNOWN, KNOWN + noise, strict=True)
    ]
    assert check_parity(lambda _: KNOWN + noise, TEXTS, KNOWN, "known", least=0.9) == pytest.approx(min(by_hand))
    least = (sorted(by_hand)[0] + sorted(by_hand)[1]) / 2
    with pytest.raises(ModelError, match=rf"of text {int(np.argmin(by_hand))} has cosine {min(by_hand):.4f}"):
        check_parity(lambda _: KNOWN + noise, TEXTS, KNOWN, "known", least=least)


def test_one_text_that_differs_is_named_with_likely_causes():
    other = KNOWN.copy()
    other[4] = hashed_vector("another text")
    with pytest.raises(ModelError, match=r"known\.jsonl: .* text 4 .*revision.*pooling.*prompt.*cut.*order"):
        check_parity(lambda _: other, TEXTS, KNOWN, "known.jsonl")


def test_the_opposite_direction_is_no_match():
    with pytest.raises(ModelError, match="cosine -1"):
        check_parity(lambda texts: -hashed(texts), TEXTS, KNOWN, "known")


def test_a_server_that_mixes_up_its_answers_is_found_out():
    with embedding_server() as server:
        embed = Endpoint(server.url, "served", EndpointOptions())
        assert check_parity(embed, TEXTS, KNOWN, "known") == pytest.approx(1)
        server.alter = wrong_order
        with pytest.raises(ModelError, match="answers come in a wrong order"):
            check_parity(embed, TEXTS, KNOWN, "known")


def test_repeated_texts_are_sent_once_and_named_by_their_first_row():
    rows, sent = [2, 0, 1, 0], []

    def embed(chosen):
        sent.append(chosen)
        return hashed(chosen) + np.array([[0.0], [5.0], [0.0]])

    with pytest.raises(ModelError, match="of text 1 has"):
        check_parity(embed, [TEXTS[row] for row in rows], KNOWN[rows], "known")
    assert sent == [[TEXTS[2], TEXTS[0], TEXTS[1]]]


@pytest.mark.parametrize(
    "known", [KNOWN[[0, 0]], KNOWN[[0, 0]] + np.array([[0.0], [1e-3]]), KNOWN[[0, 0]] * [[1.0], [2.0]]]
)
def test_known_vectors_that_cannot_tell_an_order_are_refused(known):
    with pytest.raises(ModelError, match="vectors that differ"):
        check_parity(hashed, TEXTS[:2], known, "known")


def test_one_text_cannot_tell_an_order():
    with pytest.raises(ModelError, match="two texts at least"):
        check_parity(hashed, TEXTS[:1], KNOWN[:1], "known")
    with pytest.raises(ModelError, match="two texts at least"):
        check_parity(hashed, [], KNOWN[:0], "known")


@pytest.mark.parametrize("broken", [np.nan, 0.0])
def test_vectors_without_a_direction_do_not_pass(broken):
    found = KNOWN.copy()
    found[2] = broken
    with pytest.raises(ModelError, match="of text 2 has"):
        check_parity(lambda _: found, TEXTS, KNOWN, "known")


def test_another_dimension_or_number_is_told():
    with pytest.raises(ModelError, match="of 6 numbers are expected, those made now are 7 of 5"):
        check_parity(lambda texts: hashed(texts)[:, :5], TEXTS, KNOWN, "known")
    with pytest.raises(ModelError, match="are 6 of 6"):
        check_parity(lambda texts: hashed(texts)[1:], TEXTS, KNOWN, "known")
    with pytest.raises(ModelError, match=r"shape \(6, 6\) are not those of 7 texts"):
        check_parity(hashed, TEXTS, KNOWN[1:], "known")


def test_what_embed_writes_is_read(tmp_path):
    write_embeddings(tmp_path / "known.jsonl", [{"text": text} for text in TEXTS], KNOWN.astype(np.float32))
    texts, vectors = read_known(tmp_path / "known.jsonl")
    assert texts == TEXTS
    assert vectors.dtype == np.float32
    assert np.array_equal(vectors, KNOWN.astype(np.float32))


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ('{"text": "b", "embedding": [1, 2', "broken JSON"),
        ("[1, 2]", "row is not an object"),
        ('{"embedding": [1, 2]}', "missing text"),
        ('{"text": " ", "embedding": [1, 2]}', "empty text"),
        ('{"text": "b"}', "embedding is no list of numbers"),
        ('{"text": "b", "embedding": "x"}', "embedding is no list of numbers"),
        ('{"text": "b", "embedding": []}', "embedding is no list of numbers"),
        ('{"text": "b", "embedding": [1, "x"]}', "embedding is no list of numbers"),
        ('{"text": "b", "embedding": [1, NaN]}', "embedding holds numbers that are not finite"),
        ('{"text": "b", "embedding": [1, null]}', "embedding holds numbers that are not finite"),
        ('{"text": "b", "embedding": [1]}', "embedding has 1 numbers, the first one 2"),
    ],
)
def test_a_broken_line_is_named(tmp_path, line, fault):
    path = tmp_path / "known.jsonl"
    path.write_text(json.dumps({"text": "a", "embedding": [1, 2]}) + "\n\n" + line + "\n")
    with pytest.raises(DataError, match=rf"known\.jsonl:3: {fault}"):
        read_known(path)


def test_a_missing_file_or_one_of_another_kind_is_told(tmp_path):
    with pytest.raises(DataError, match=r"known\.jsonl"):
        read_known(tmp_path / "known.jsonl")
    with pytest.raises(DataError, match=r"known\.npy.*narrlit embed"):
        read_known(tmp_path / "known.npy")
