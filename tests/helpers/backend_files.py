"""Files of exported folders, run as sentence-transformers' backends run them.

OpenVINO runs in a process of its own: its threads do not survive the forks of other tests.
"""

from concurrent.futures import ProcessPoolExecutor
from importlib.util import find_spec
from multiprocessing import get_context

import torch
from sentence_transformers import SentenceTransformer


def embed_by_hand(folder, run, texts):
    """Embed texts as sentence-transformers does with a backend: `run` takes the place of the first module."""
    model = SentenceTransformer(str(folder), device="cpu")
    features = model.preprocess(texts)
    inputs = {"input_ids": features["input_ids"].numpy(), "attention_mask": features["attention_mask"].numpy()}
    features["token_embeddings"] = torch.from_numpy(run(inputs))
    for module in list(model)[1:]:
        features = module(features)
    return features["sentence_embedding"].detach().numpy()


def openvino_embeddings(model, out, texts):
    """Export a model for OpenVINO, in float32 and float16; the embeddings of texts by torch and by each file."""
    with ProcessPoolExecutor(1, get_context("spawn")) as process:
        return process.submit(_openvino_embeddings, model, out, texts).result()


def _openvino_embeddings(model, out, texts):
    import openvino

    from narrlit.exporting.folders import export

    exported = export(model, out, to="openvino", weights="float16")
    found = {"torch": SentenceTransformer(str(exported.path), device="cpu").encode(texts)}
    for file in exported.backend_files:
        options = {"INFERENCE_PRECISION_HINT": "f32"}
        compiled = openvino.Core().compile_model(exported.path / file.path, "CPU", options)

        def run(inputs, compiled=compiled):
            return compiled(inputs)["last_hidden_state"]

        found[file.path] = embed_by_hand(exported.path, run, texts)
    return found


def hide_openvino(monkeypatch, module):
    """Make a module that asks by `find_spec` believe that OpenVINO is not installed."""
    monkeypatch.setattr(module, "find_spec", lambda name: None if name == "openvino" else find_spec(name))
