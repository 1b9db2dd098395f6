"""Post-processing: each step against plain NumPy, folded into one map, and the same in exported folders."""

import numpy as np
import pytest
import torch
from head_encoders import TEXTS, joined, sentence_encoder, view_encoder, viewed
from refusals import refused
from sentence_transformers import SentenceTransformer
from sentence_transformers.models import Dense
from sklearn.covariance import LedoitWolf

from narrlit.exporting.folders import write_model_folder
from narrlit.exporting.origin import Origin
from narrlit.models.affine_steps import fit_steps
from narrlit.models.config import EncoderConfig, Fusion, parse_steps
from narrlit.models.embedding import embed_stories
from narrlit.models.encoder import Encoder
from narrlit.models.registry import load_encoder, with_fusion

RANDOM = np.random.default_rng(4)
FITTED = RANDOM.normal(size=(40, 8)) * np.arange(1, 9) + 3
OTHERS = RANDOM.normal(size=(5, 8)) + 1


def unit(vectors):
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def test_steps_match_a_computation_by_hand():
    fitted, others = unit(FITTED), unit(OTHERS)
    mean = fitted.mean(0)
    fitted, others = fitted - mean, others - mean
    top = np.linalg.eigh(fitted.T @ fitted)[1][:, -2:]
    fitted, others = (x - x @ top @ top.T for x in (fitted, others))

    assert np.allclose(fit_steps(parse_steps("center,abtt:2"), FITTED)(OTHERS), unit(others))

    variances, components = np.linalg.eigh(LedoitWolf().fit(fitted).covariance_)
    white = (others @ components / np.sqrt(variances))[:, ::-1]
    done = fit_steps(parse_steps("abtt:2,whiten,truncate:3"), FITTED)

    assert np.allclose(abs(done(OTHERS * 7)), abs(unit(white[:, :3])))
    assert done.weight.shape == (3, 8)


@pytest.mark.parametrize("count", [6, 40, 20_000])
def test_whitening_with_many_stories_inverts_the_covariance(count):
    vectors = np.random.default_rng(1).normal(size=(count, 8)) * np.arange(1, 9) + 3
    values = unit(vectors)
    whitened = fit_steps(parse_steps("whiten"), vectors)

    assert np.allclose(whitened.weight.T @ whitened.weight, LedoitWolf().fit(values).precision_)

    variances = np.array([np.var(values @ (row / np.linalg.norm(row))) for row in whitened.weight])
    # Of 6 stories, directions from the sixth on have no variance but rounding, of which no order is known.
    assert (np.diff(variances) < 1e-12).all()
    assert variances[0] > 2 * variances[4] > 1e-6

    exact = np.allclose(np.cov((values @ whitened.weight.T).T), np.eye(8), atol=0.05)
    assert (exact, whitened.shrinkage < 0.01) == ((True, True) if count == 20_000 else (False, False))


@pytest.mark.parametrize(
    ("steps", "refusal"),
    [
        ("centre", {"code": "unknown_step", "near": "center"}),
        ("abtt", {"code": "form_of_step"}),
        ("abtt:0", {"code": "form_of_step"}),
        ("center:1", {"code": "form_of_step"}),
    ],
)
def test_unknown_steps_are_refused(steps, refusal):
    with refused(**refusal):
        parse_steps(steps)


@pytest.mark.parametrize(
    ("steps", "count", "refusal"),
    [
        ("center", 1, {"code": "few_for_step", "step": "center", "stories": 1, "dimension": 8}),
        ("abtt:5", 5, {"code": "few_for_number", "step": "abtt:5", "stories": 5, "dimension": 8}),
        ("whiten", 0, {"code": "few_for_step", "step": "whiten", "stories": 0, "dimension": 8}),
        ("truncate:9", 40, {"code": "truncated_dimension", "number": 9, "dimension": 8}),
    ],
)
def test_too_few_stories_or_dimensions_are_refused(steps, count, refusal):
    with refused(**refusal):
        fit_steps(parse_steps(steps), FITTED[:count])


def with_steps(encoder, stories, steps):
    """The encoder with post-processing fitted on the stories, and their embeddings by NumPy."""
    plain = embed_stories(encoder, stories, progress=False).embeddings
    fitted = fit_steps(parse_steps(steps), plain)
    weight = torch.tensor(fitted.weight).float()
    bias = torch.tensor(fitted.bias).float()
    encoder.postprocess(Dense(*weight.T.shape, True, torch.nn.Identity(), weight, bias))
    assert abs(embed_stories(encoder, stories, progress=False).embeddings - fitted(plain)).max() < 1e-5
    assert encoder.dimension == len(weight)
    assert encoder.normalized is True
    return fitted(plain)


@pytest.mark.parametrize("normalize", [True, False])
def test_an_exported_text_encoder_gives_the_same_embeddings_without_this_package(tiny, tmp_path, normalize):
    encoder = Encoder(EncoderConfig(tiny(), normalize=normalize)).eval()
    expected = with_steps(encoder, TEXTS, "abtt:1,truncate:20")
    about = {"steps": "abtt:1", "stories": 4, "fit_on": [{"path": "f.jsonl", "sha256": "abc"}]}
    write_model_folder(encoder, tmp_path / "out", Origin(trained=False), postprocess=about)
    theirs = SentenceTransformer(str(tmp_path / "out"), device="cpu").encode(TEXTS)

    assert abs(theirs - expected).max() < 1e-5
    assert (
        abs(embed_stories(load_encoder(str(tmp_path / "out")), TEXTS, progress=False).embeddings - expected).max()
        < 1e-5
    )
    assert "fitted on 4 stories, `f.jsonl` (SHA-256 abc)" in (tmp_path / "out" / "README.md").read_text()

    again = Encoder(EncoderConfig(str(tmp_path / "out"), normalize=True)).eval()  # as a fit reads it
    assert abs(embed_stories(again, TEXTS, progress=False).embeddings - expected).max() < 1e-5


@pytest.mark.parametrize("reads", ["sentences", "views"])
def test_an_exported_head_keeps_its_post_processing(tiny, tmp_path, reads):
    stories = TEXTS if reads == "sentences" else viewed(5)
    encoder = (sentence_encoder if reads == "sentences" else view_encoder)(tiny())
    expected = with_steps(encoder, stories, "abtt:1,truncate:10")
    write_model_folder(encoder, tmp_path / "out", Origin(trained=False))
    texts = TEXTS if reads == "sentences" else joined(stories)
    theirs = SentenceTransformer(str(tmp_path / "out"), trust_remote_code=True, device="cpu").encode(texts)

    assert abs(theirs - expected).max() < 1e-5

    again = load_encoder(str(tmp_path / "out"))
    assert abs(embed_stories(again, stories, progress=False).embeddings - expected).max() < 1e-5
    with refused("fusion_after_postprocessing"):
        with_fusion(again, Fusion(1, 0, 0, 0))
