"""Files of an exported folder that sentence-transformers loads with `backend="onnx"` or `backend="openvino"`.

Letters in shapes: N texts, T tokens, D dimension.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from sentence_transformers import SentenceTransformer

from narrlit.data.schema import FloatArray
from narrlit.data.tales import sample_tales
from narrlit.embedding_cache.listing import format_bytes
from narrlit.encoding.exported import RUNTIME
from narrlit.encoding.story_encoder import unit_vectors
from narrlit.errors import ModelError, OptionError, reading
from narrlit.exporting.onnx import HIDDEN_STATE, INPUTS, LARGEST_COSINE_CHANGE, MOST_WEIGHTS, write_onnx
from narrlit.models.encoder import Encoder
from narrlit.models.pretrained import quiet
from narrlit.optional import require

Backend = Literal["onnx", "openvino"]
WeightFormat = Literal["float32", "float16", "int8"]
Features: TypeAlias = dict[str, Any]
TokenEmbedder: TypeAlias = Callable[[Mapping[str, NDArray[np.int64]]], FloatArray]
"""Function from the inputs of a transformer, each (N, T), to the embeddings of tokens (N, T, D)."""

FILES: dict[tuple[Backend, WeightFormat], str] = {
    ("onnx", "float32"): "onnx/model.onnx",
    ("onnx", "float16"): "onnx/model_fp16.onnx",
    ("onnx", "int8"): "onnx/model_qint8_quantized.onnx",
    ("openvino", "float32"): "openvino/openvino_model.xml",
    ("openvino", "float16"): "openvino/openvino_model_fp16.xml",
}
"""Files by backend and number format: sentence-transformers' default, or its name for a file of this format."""
BATCH = 8
"""Texts per forward pass of a check."""


@dataclass(frozen=True)
class BackendFile:
    """File of an exported folder that sentence-transformers loads with `backend=`.

    Attributes:
        path: path in the folder, with slashes.
        weights: number format of the weights.
        size: size in bytes, with that of a separate file of weights.
        largest_change: largest change of a cosine of two sample tales, compared with torch in float32.
        mean_change: mean change of these cosines.
    """

    path: str
    weights: WeightFormat
    size: int
    largest_change: float
    mean_change: float

    def __str__(self) -> str:
        """Format path, size and changes as one line."""
        change = f"cosines change by at most {self.largest_change:.0e}, {self.mean_change:.0e} on average"
        return f"{self.path}: {self.weights}, {format_bytes(self.size)}; {change}"


def check_backend(to: Backend, weights: WeightFormat) -> None:
    """Check, before any work, that a backend has a number format and that its packages are installed.

    Raises:
        MissingExtraError: if a package is not installed.
        OptionError: if the backend has no such number format.
    """
    if (to, weights) not in FILES:
        raise OptionError("weights_of_backend", weights=weights, to=to)
    require("onnx", to)
    require(RUNTIME if to == "onnx" else "openvino", to)


def check_exportable(encoder: Encoder, name: str) -> None:
    """Check that a model can be converted.

    Raises:
        ModelError: if it reads views or sentences, mixes padding into embeddings, or has more than 400 million weights.
    """
    if encoder.reads != "text":
        raise ModelError("backend_of_parts", model=name, reads=encoder.reads)
    if encoder.mixes_padding:
        raise ModelError("backend_pads", model=name, type=encoder.transformer.config.model_type)
    weights = sum(weight.numel() for weight in encoder.parameters())
    if weights > MOST_WEIGHTS:
        raise ModelError("large_for_backend", model=name, weights=weights, limit=MOST_WEIGHTS)


def write_backend_files(folder: Path, to: Backend, weights: WeightFormat) -> tuple[BackendFile, ...]:
    """Add the file of a backend in float32 to a sentence-transformers folder, and one in another number format.

    The cosines of the sample tales are compared with those of torch in float32.

    Args:
        folder: sentence-transformers folder of a model of single texts.
        to: backend that loads the files.
        weights: number format of the weights; besides float32, which is always written.

    Returns:
        The written files, that in float32 first.

    Raises:
        MissingExtraError: if a package is not installed.
        ModelError: if the model can't be converted, or the conversion to float32 changes a cosine by more than 1e-5.
    """
    formats: list[WeightFormat] = ["float32"] if weights == "float32" else ["float32", weights]
    (folder / to).mkdir()
    with reading("conversion_failed", to, error=ModelError):
        with TemporaryDirectory() as temporary:
            graph = Path(temporary, "model.onnx")
            write_onnx(folder, graph, pooled=False)
            for number_format in formats:
                convert_graph(graph, folder / FILES[to, number_format], number_format)
        files = _measured(folder, to, formats)
    if not files[0].largest_change <= LARGEST_COSINE_CHANGE:  # or NaN
        raise ModelError("conversion_changes_cosines", to=to, change=files[0].largest_change)
    return files


def convert_graph(graph: Path, path: Path, weights: WeightFormat) -> None:
    """Write an ONNX graph in float32 in another number format, or for OpenVINO.

    Args:
        graph: the graph, with less than 2 GB.
        path: file to write; `.onnx`, or `.xml` for OpenVINO, with the weights in a file `.bin` beside it.
        weights: number format of the weights. Computations stay in float32 with float16 in OpenVINO; they are in
            float16 with float16 in ONNX Runtime, and in 8 bits with int8.

    Raises:
        MissingExtraError: if a package is not installed.
    """
    if path.suffix == ".xml":
        openvino = require("openvino", "openvino")
        openvino.save_model(openvino.Core().read_model(graph), path, compress_to_fp16=weights == "float16")
    elif weights == "float16":
        float16 = require("onnxruntime.transformers.float16", "onnx")
        onnx = require("onnx", "onnx")
        onnx.save(float16.convert_float_to_float16(onnx.load(graph), keep_io_types=True), path)
    elif weights == "int8":
        _quantize(graph, path)
    else:
        path.write_bytes(graph.read_bytes())


def open_token_embedder(path: Path) -> TokenEmbedder:
    """Open a file that `write_backend_files` wrote, to compute in float32 on the CPU as far as its weights allow.

    Raises:
        MissingExtraError: if a package is not installed.
    """
    if path.suffix == ".onnx":
        session = require(RUNTIME, "onnx").InferenceSession(str(path), providers=["CPUExecutionProvider"])
        return lambda inputs: session.run([HIDDEN_STATE], inputs)[0]
    openvino = require("openvino", "openvino")
    # By default, OpenVINO computes in bfloat16 where the processor does.
    model = openvino.Core().compile_model(path, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    return lambda inputs: model(inputs)[HIDDEN_STATE]


def file_size(path: Path) -> int:
    """Return the size of a backend's file in bytes, with that of OpenVINO's file of weights."""
    parts = [path] if path.suffix == ".onnx" else [path, path.with_suffix(".bin")]
    return sum(part.stat().st_size for part in parts)


def _quantize(graph: Path, path: Path) -> None:
    """Quantize the weights of a graph to int8, with a scale for each channel; activations are quantized when it runs.

    One scale for a whole matrix moves cosines two to three times as far. With 7 of the 8 bits, processors without VNNI
    add without overflow.
    """
    quantization = require("onnxruntime.quantization", "onnx")
    preparation = require("onnxruntime.quantization.shape_inference", "onnx")
    with TemporaryDirectory() as temporary:
        prepared = Path(temporary, graph.name)
        preparation.quant_pre_process(graph, prepared, skip_symbolic_shape=True)
        int8 = quantization.QuantType.QInt8
        quantization.quantize_dynamic(prepared, path, weight_type=int8, per_channel=True, reduce_range=True)


def _measured(folder: Path, backend: Backend, formats: Sequence[WeightFormat]) -> tuple[BackendFile, ...]:
    """Compare the cosines of the sample tales by each file with those by torch."""
    with quiet():
        model = SentenceTransformer(str(folder), device="cpu", local_files_only=True).float().eval()
    texts = [tale["text"] for tale in sample_tales()]
    expected = _cosines(model, texts, model[0])
    files = []
    for number_format in formats:
        name = FILES[backend, number_format]
        path = folder / name
        embed_tokens = open_token_embedder(path)

        def transformer(features: Features) -> Features:
            inputs = {name: features[name].numpy() for name in INPUTS}
            return {**features, "token_embeddings": torch.from_numpy(embed_tokens(inputs))}  # noqa: B023

        changes = np.abs(_cosines(model, texts, transformer) - expected)
        files.append(BackendFile(name, number_format, file_size(path), float(changes.max()), float(changes.mean())))
    return tuple(files)


def _cosines(
    model: SentenceTransformer, texts: Sequence[str], transformer: Callable[[Features], Features]
) -> FloatArray:
    """Compute the cosines of all pairs of texts, with another transformer in place of the model's first module."""
    vectors = []
    with torch.inference_mode():
        for start in range(0, len(texts), BATCH):
            features = transformer(model.preprocess(list(texts[start : start + BATCH])))
            for module in list(model)[1:]:
                features = module(features)
            vectors.append(features["sentence_embedding"].numpy())
    embeddings = unit_vectors(np.concatenate(vectors))
    first, second = np.triu_indices(len(texts), k=1)
    cosines: FloatArray = (embeddings @ embeddings.T)[first, second]
    return cosines
