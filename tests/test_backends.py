"""Files for sentence-transformers' ONNX and OpenVINO backends: what these read, the same embeddings, measured changes.

Their packages do not install beside this project's transformers; `release/check_backends.py` runs them.
"""

import sys

import numpy as np
import pytest
import torch
from backend_files import embed_by_hand, openvino_embeddings
from head_encoders import sentence_encoder, view_encoder
from json_files import read_json
from refusals import refused
from sentence_transformers import SentenceTransformer

from narrlit.data.tales import sample_tales
from narrlit.encoding.loading import load
from narrlit.encoding.story_encoder import StoryEncoder
from narrlit.errors import MissingExtraError
from narrlit.exporting import backends
from narrlit.exporting.folders import export
from narrlit.exporting.hub import push

TEXTS = [
    "They argued about the money.",
    "They argued about the money. Nobody came to the feast, and the harvest failed. " * 12,
    "A fox.",
]


@pytest.fixture(scope="module")
def exported(tiny, tmp_path_factory):
    """Result of exporting a tiny model for ONNX Runtime, with weights in int8."""
    pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    return export(tiny(), tmp_path_factory.mktemp("exported") / "model", to="onnx", weights="int8")


def run_onnx(path):
    """Function that runs a graph by the names that sentence-transformers uses."""
    session = pytest.importorskip("onnxruntime").InferenceSession(str(path), providers=["CPUExecutionProvider"])
    assert {node.name for node in session.get_inputs()} == {"input_ids", "attention_mask"}
    assert {node.name for node in session.get_outputs()} == {"last_hidden_state"}
    return lambda inputs: session.run(None, inputs)[0]


def matrix_types(path):
    """Names of the number formats of a graph's matrices."""
    onnx = pytest.importorskip("onnx")
    matrices = [tensor for tensor in onnx.load(path).graph.initializer if len(tensor.dims) == 2 and tensor.dims[0] > 1]
    return {onnx.TensorProto.DataType.Name(matrix.data_type) for matrix in matrices}


def test_the_onnx_file_gives_the_embeddings_of_torch(exported):
    expected = SentenceTransformer(str(exported.path), device="cpu").encode(TEXTS)
    found = embed_by_hand(exported.path, run_onnx(exported.path / "onnx" / "model.onnx"), TEXTS)
    np.testing.assert_allclose(found, expected, atol=1e-5)  # float32, sums in another order


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "pooling"), [("qwen3", "lasttoken"), pytest.param("mpnet", "cls", marks=pytest.mark.long)]
)
def test_other_architectures_are_converted_in_float32_and_float16(tiny, tmp_path, kind, pooling):
    pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    model = export(tiny(kind, pooling), tmp_path / "out", to="onnx", weights="float16")
    exact, half = model.backend_files
    expected = SentenceTransformer(str(model.path), device="cpu").encode(TEXTS)

    found = embed_by_hand(model.path, run_onnx(model.path / exact.path), TEXTS)
    np.testing.assert_allclose(found, expected, atol=1e-5)  # float32, sums in another order

    assert half.path == "onnx/model_fp16.onnx"
    assert "FLOAT" not in matrix_types(model.path / half.path)
    rounded = embed_by_hand(model.path, run_onnx(model.path / half.path), TEXTS)
    np.testing.assert_allclose(rounded, expected, atol=5e-3)  # 11 bits, in three layers
    assert 1e-6 < half.largest_change < 5e-3


@pytest.mark.slow
def test_postprocessing_follows_the_onnx_file(tiny, tmp_path, make):
    pytest.importorskip("onnx")
    stories = make("stories.jsonl", [{"text": tale["text"]} for tale in sample_tales()])
    encoder = load(tiny(), postprocess="whiten,truncate:6", fit_on=str(stories), device="cpu")
    folder = export(encoder, tmp_path / "out", to="onnx").path
    found = embed_by_hand(folder, run_onnx(folder / "onnx" / "model.onnx"), TEXTS)
    assert found.shape == (3, 6)
    np.testing.assert_allclose(found, SentenceTransformer(str(folder), device="cpu").encode(TEXTS), atol=1e-4)


@pytest.mark.long
@pytest.mark.slow
def test_the_openvino_files_give_the_embeddings_of_torch(tiny, tmp_path):
    pytest.importorskip("openvino")
    found = openvino_embeddings(tiny(), tmp_path / "out", TEXTS)
    # float32: sums in another order; float16: weights rounded to 11 bits
    for name, tolerance in (("openvino_model.xml", 1e-5), ("openvino_model_fp16.xml", 2e-3)):
        np.testing.assert_allclose(found[f"openvino/{name}"], found["torch"], atol=tolerance)


def test_the_measured_changes_are_those_of_the_sample_tales(exported):
    texts = [tale["text"] for tale in sample_tales()]
    model = SentenceTransformer(str(exported.path), device="cpu")
    expected = model.encode(texts)
    exact, quantized = exported.backend_files
    run = run_onnx(exported.path / quantized.path)

    vectors = []
    for text in texts:
        features = model.preprocess([text])
        inputs = {name: features[name].numpy() for name in ("input_ids", "attention_mask")}
        features["token_embeddings"] = torch.from_numpy(run(inputs))
        for module in list(model)[1:]:
            features = module(features)
        vectors.append(features["sentence_embedding"].detach().numpy()[0])
    changes = np.abs(np.array(vectors) @ np.array(vectors).T - expected @ expected.T)

    assert exact.largest_change < 1e-5 < quantized.largest_change
    # Activations are quantized batch by batch, so that padding changes their scale.
    assert changes.max() / 3 < quantized.largest_change < 3 * changes.max()
    assert quantized.mean_change < quantized.largest_change
    assert matrix_types(exported.path / exact.path) == {"FLOAT"}
    assert "FLOAT" not in matrix_types(exported.path / quantized.path)


def test_the_files_have_the_names_that_sentence_transformers_looks_for(exported):
    files = {path.relative_to(exported.path).as_posix() for path in exported.path.glob("onnx/*")}
    assert files == {"onnx/model.onnx", "onnx/model_qint8_quantized.onnx"}
    assert [file.path for file in exported.backend_files] == sorted(files)


def test_exported_modules_have_paths_that_earlier_releases_know(exported):
    types = [module["type"] for module in read_json(exported.path / "modules.json")]
    assert types == [f"sentence_transformers.models.{name}" for name in ("Transformer", "Pooling", "Normalize")]


def test_the_card_shows_how_the_backend_loads_the_file(exported):
    card = (exported.path / "README.md").read_text(encoding="utf-8")
    assert 'backend="onnx", model_kwargs={"file_name": "onnx/model_qint8_quantized.onnx"}' in card
    assert f"| `onnx/model_qint8_quantized.onnx` | int8 | {exported.backend_files[1].largest_change:.0e} |" in card


def test_the_files_are_pushed_with_the_model(exported):
    pushed = push(exported.path, "ann/plots", dry_run=True)
    assert {"onnx/model.onnx", "onnx/model_qint8_quantized.onnx"} <= {file.path for file in pushed.files}


def test_an_exported_folder_still_loads_as_a_model(exported, tiny):
    np.testing.assert_allclose(load(exported.path).embed(TEXTS), load(tiny()).embed(TEXTS), atol=1e-6)


@pytest.mark.slow
def test_the_command_prints_each_file_with_its_change(narrlit, tiny):
    pytest.importorskip("onnx")
    result = narrlit("export", tiny(), "--out", "model", "--to", "onnx", "--weights", "float16")
    assert result.code == 0
    lines = result.err.splitlines()
    assert lines[-2].startswith("onnx/model.onnx: float32, ")
    assert lines[-1].startswith("onnx/model_fp16.onnx: float16, ")
    assert "cosines change by at most" in lines[-1]


@pytest.mark.parametrize("reads", ["sentences", "views"])
def test_models_of_sentences_and_views_are_refused(exported, tiny, tmp_path, reads):
    module = sentence_encoder(tiny()) if reads == "sentences" else view_encoder(tiny(), 16)
    encoder = StoryEncoder(module)
    with refused("backend_of_parts", reads=reads):
        export(encoder, tmp_path / "out", to="onnx")
    assert not (tmp_path / "out").exists()


def test_weights_that_do_not_fit_are_refused_before_a_model_is_loaded(tmp_path):
    with refused("weights_need_backend", weights="int8"):
        export("no-such-model", tmp_path / "out", weights="int8")
    with refused("weights_of_backend", weights="int8", to="openvino"):
        export("no-such-model", tmp_path / "out", to="openvino", weights="int8")


def test_without_its_packages_a_backend_names_the_extra(monkeypatch, tmp_path):
    pytest.importorskip("onnx")
    for module, to in (("onnxruntime", "onnx"), ("openvino", "openvino")):
        monkeypatch.setitem(sys.modules, module, None)
        with pytest.raises(MissingExtraError, match=rf"pip install 'narrlit\[{to}\]'"):
            export("no-such-model", tmp_path / "out", to=to)


def test_a_conversion_that_changes_cosines_is_refused(exported, tiny, tmp_path, monkeypatch):
    def wrong(path):
        run = run_onnx(path)
        return lambda inputs: run(inputs) + np.float32(0.1) * inputs["attention_mask"].cumsum(1)[..., None] % 2

    monkeypatch.setattr(backends, "open_token_embedder", wrong)
    with refused("conversion_changes_cosines", to="onnx"):
        export(tiny(), tmp_path / "out", to="onnx")
    assert not (tmp_path / "out").exists()
