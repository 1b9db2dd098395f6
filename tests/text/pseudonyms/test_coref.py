import json
import logging
import os
import random
import socket
import sys
from functools import partial
from pathlib import Path

import pytest
import torch
from tiny_models import trained_tokenizer

from narrlit.errors import MissingExtraError, ModelError
from narrlit.text.pseudonyms import coref
from narrlit.text.pseudonyms.coref import open_coreference
from narrlit.text.pseudonyms.spacy_backend import open_spacy

spacy = pytest.importorskip("spacy", reason="spaCy is not installed (extra text)")
pytest.importorskip("fastcoref", reason="fastcoref is not installed (pip install --no-deps fastcoref)")

SHORT = "The king of Velden met Anna, and she told him that his crown was lost."
LONG = " ".join([SHORT, "Anna's brother found it in the river; he gave it back to the king."] * 4)
HEAD = {"max_segment_len": 48, "max_span_length": 5, "top_lambda": 0.4, "ffnn_size": 16, "dropout_prob": 0.3}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The folder of a small random F-coref; its seed is one of those that find several clusters."""
    from transformers import RobertaConfig

    folder, tokenizer = tmp_path_factory.mktemp("f-coref"), trained_tokenizer("roberta")
    shape = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
    config = RobertaConfig(**shape, vocab_size=len(tokenizer), max_position_embeddings=64, coref_head=HEAD)
    torch.manual_seed(11)
    network = coref._network_class()(config)
    for weights in network.parameters():
        if weights.ndim > 1:
            torch.nn.init.normal_(weights, std=0.5)
    network.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture
def copied(made, tmp_path):
    for file in made.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    return tmp_path


@pytest.fixture
def calls(monkeypatch):
    """What tries to reach the network, which no setting forbids meanwhile."""
    tried = []

    def refuse(name, *arguments, **options):
        tried.append(name)
        raise OSError("no network here")

    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    monkeypatch.setattr(socket.socket, "connect", partial(refuse, "connect"))
    monkeypatch.setattr(socket, "getaddrinfo", partial(refuse, "getaddrinfo"))
    monkeypatch.setattr("spacy.cli.download", partial(refuse, "spacy download"))
    monkeypatch.setattr("fastcoref.modeling.download", partial(refuse, "spacy download"))
    return tried


def tokens(text):
    return [(token.idx, token.idx + len(token)) for token in spacy.blank("en")(text)]


def test_clusters_are_those_of_fastcoref_itself(made):
    from fastcoref import FCoref

    own = open_coreference(str(made))
    peer = FCoref(str(made), device="cpu", nlp=spacy.blank("en"), enable_progress_bar=False)
    sizes = []
    # The long text has a last segment that is shorter than the others, which the network reads apart.
    for text in (SHORT, LONG, "Anna", "Anna ran"):
        (said,) = peer.predict([text])
        found = [sorted({span for span in cluster if span}) for cluster in said.get_clusters(as_strings=False)]
        assert own.clusters(text, tokens(text)) == sorted(cluster for cluster in found if len(cluster) > 1)
        sizes.append(len(found))
    assert sizes[0] > 0
    assert sizes[1] > 0


def test_clusters_are_whole_words_in_order(made):
    model, places = open_coreference(str(made)), tokens(LONG)
    clusters = model.clusters(LONG, places)
    assert clusters == sorted(clusters)
    starts, ends = zip(*places, strict=True)
    for cluster in clusters:
        assert len(cluster) > 1
        assert cluster == sorted(set(cluster))
        assert all(start in starts and end in ends and start < end for start, end in cluster)
    assert model.clusters("", []) == []
    training = model._network.train()  # its dropout is off all the same
    assert coref.Coreference(training, model._tokenizer).clusters(LONG, places) == clusters


def test_chains_follow_the_best_earlier_candidate():
    import numpy as np

    starts, ends = np.array([[0, 2, 4, 6, 8]]), np.array([[1, 2, 5, 6, 9]])
    scores = np.full((1, 5, 6), -9.0)
    scores[0, :, 5] = 0.0
    scores[0, 2, 0], scores[0, 2, 1] = 2.0, 1.0  # the third joins the first, though the second would do
    scores[0, 3, 1] = -0.5  # the fourth would rather have none
    scores[0, 4, 2] = 0.5  # the last joins the third, and so the first
    assert coref._chains(starts, ends, scores) == [[(0, 1), (4, 5), (8, 9)]]


def test_only_the_beginning_of_a_very_long_text_is_read(made, monkeypatch):
    model, places = open_coreference(str(made)), tokens(LONG)
    whole = model.clusters(LONG, places)
    monkeypatch.setattr(coref, "MAX_PIECES", 30)
    read = model.clusters(LONG, places)
    last = max(end for cluster in whole for _, end in cluster)
    assert 0 < max(end for cluster in read for _, end in cluster) < last / 2


def test_names_and_clusters_together_without_network_or_noise(made, tmp_path, calls, capfd):
    pipeline = spacy.blank("en")
    ruler = pipeline.add_pipe("entity_ruler")
    ruler.add_patterns([{"label": "PERSON", "pattern": "Anna"}, {"label": "GPE", "pattern": "Velden"}])
    pipeline.to_disk(tmp_path)
    finder = open_spacy(str(tmp_path), str(made))
    found, empty, again = finder.find([LONG, "", LONG])
    assert (found, empty) == (again, [])
    assert [LONG[m.start : m.end] for m in found if m.kind == "Character"] == ["Anna"] * LONG.count("Anna")
    clustered = {mention.cluster for mention in found} - {None}
    assert clustered <= set(range(len(open_coreference(str(made)).clusters(LONG, tokens(LONG)))))
    assert any(mention.kind is None for mention in found)
    assert calls == []
    out, lines = capfd.readouterr()
    # This program's own bar may show on a slow machine; the libraries' must not.
    noise = [line for line in lines.replace("\r", "\n").splitlines() if line.strip() and "finding names" not in line]
    assert (out, noise) == ("", [])


def test_loading_leaves_seeds_and_settings_alone(copied, monkeypatch):
    from safetensors.torch import load_file, save_file
    from transformers.utils import logging as library

    weights = load_file(copied / "model.safetensors")
    kept = {name: weight for name, weight in weights.items() if "pooler" not in name}
    assert len(kept) < len(weights)
    save_file(kept, copied / "model.safetensors", metadata={"format": "pt"})
    monkeypatch.setenv("DISABLE_SAFETENSORS_CONVERSION", "perhaps")
    before = torch.get_rng_state(), random.getstate(), library.get_verbosity(), library.is_progress_bar_enabled()
    seen, read = [], coref._read

    def watched(*arguments):
        seen.append(os.environ["DISABLE_SAFETENSORS_CONVERSION"])
        return read(*arguments)

    monkeypatch.setattr(coref, "_read", watched)
    network = open_coreference(str(copied))._network
    assert torch.equal(before[0], torch.get_rng_state())
    assert before[1:] == (random.getstate(), library.get_verbosity(), library.is_progress_bar_enabled())
    assert (seen, os.environ["DISABLE_SAFETENSORS_CONVERSION"]) == (["1"], "perhaps")
    assert not network.training
    assert all(torch.equal(weight.cpu(), kept[name]) for name, weight in network.state_dict().items() if name in kept)


def test_importing_fastcoref_leaves_the_log_alone(monkeypatch):
    for name in [name for name in sys.modules if name.partition(".")[0] == "fastcoref"]:
        monkeypatch.delitem(sys.modules, name)
    root = logging.getLogger()
    monkeypatch.setattr(root, "handlers", [])
    level = root.level
    coref._network_class()
    assert (root.handlers, root.level) == ([], level)


def test_a_pickle_is_read_for_tensors_alone(copied):
    from safetensors.torch import load_file

    weights = load_file(copied / "model.safetensors")
    (copied / "model.safetensors").unlink()
    torch.save(weights, copied / "pytorch_model.bin")
    safe = open_coreference(str(copied))
    assert safe.clusters(LONG, tokens(LONG)) != []
    marker = copied / "ran"
    torch.save(weights | {"code": _Runs(str(marker))}, copied / "pytorch_model.bin")
    with pytest.raises(ModelError, match="broken, or hold more than tensors, which is never read"):
        open_coreference(str(copied))
    assert not marker.exists()


class _Runs:
    def __init__(self, marker):
        self.marker = marker

    def __reduce__(self):
        return Path.touch, (Path(self.marker),)


def edit_config(folder, change, name="config.json"):
    config = json.loads((folder / name).read_text())
    change(config)
    (folder / name).write_text(json.dumps(config))


def name_own_code(folder):
    edit_config(folder, lambda config: config.update(model_type="own", auto_map={"AutoConfig": "own.Config"}))
    (folder / "own.py").write_text("raise SystemExit('this must not run')")


def drop_vocabulary(folder):
    (folder / "tokenizer.json").unlink()
    edit_config(folder, lambda config: config.update(tokenizer_class="RobertaTokenizer"), "tokenizer_config.json")


def drop_weights(folder):
    from safetensors.torch import load_file, save_file

    weights = load_file(folder / "model.safetensors")
    kept = {name: weight for name, weight in weights.items() if "antecedent_s2s" not in name}
    save_file(kept, folder / "model.safetensors", metadata={"format": "pt"})


BREAKS = {
    "its config's coref_head has no max_segment_len": lambda f: edit_config(f, lambda c: c.pop("coref_head")),
    "its config's coref_head has no top_lambda": lambda f: edit_config(f, lambda c: c["coref_head"].pop("top_lambda")),
    "contains custom code": name_own_code,
    "it has no weights for antecedent_s2s_classifier.bias": drop_weights,
    "the folder can't be loaded": lambda f: (f / "model.safetensors").write_bytes(b"cut"),
    "not a valid JSON file": lambda f: (f / "config.json").write_text("{"),
    "has no tokenizer of use": drop_vocabulary,
    "Error no file named model.safetensors": lambda f: (f / "model.safetensors").unlink(),
}


@pytest.mark.parametrize("said", BREAKS)
def test_a_broken_model_is_refused_in_one_line(copied, said):
    BREAKS[said](copied)
    with pytest.raises(ModelError, match=said) as caught:
        open_coreference(str(copied))
    assert "\n" not in str(caught.value)
    assert str(copied) in str(caught.value)


def test_a_model_that_is_nowhere_is_refused():
    with pytest.raises(ModelError, match="nobody/nothing: there is no such folder, and the hub did not give it"):
        open_coreference("nobody/nothing")


@pytest.mark.parametrize("package", ["spacy", "datasets", "fastcoref"])
def test_without_a_package_the_commands_are_named(monkeypatch, package):
    for name in [name for name in sys.modules if name.partition(".")[0] in (package, "fastcoref")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    commands = r"pip install 'narrlit\[text\]' && pip install --no-deps fastcoref$"
    with pytest.raises(MissingExtraError, match=f"{package} is not installed: {commands}"):
        open_coreference("nobody/nothing")
