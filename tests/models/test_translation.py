"""Translators: batches change nothing, nothing is lost or made twice, and every direction is its own."""

import json

import pytest
import torch
from tiny_translators import POSITIONS, short_texts, tiny_marian, tiny_nllb

from narrlit.errors import DataError, MissingExtraError, ModelError, OptionError
from narrlit.models import translation_model
from narrlit.models.pivots import Pivots, Route
from narrlit.models.translation import Translator
from narrlit.models.translation_log import Translation, TranslationLog
from narrlit.models.translation_model import TranslationModel

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def marian(tmp_path_factory):
    return TranslationModel(tiny_marian(tmp_path_factory.mktemp("marian")), CPU)


@pytest.fixture(scope="module")
def nllb(tmp_path_factory):
    return TranslationModel(tiny_nllb(tmp_path_factory.mktemp("nllb")), CPU)


@pytest.fixture
def translator(marian, tmp_path):
    """translator(...): of the tiny Marian model, with a log of its own unless one is named."""

    def build(model=marian, source=None, target=None, log=None, **options):
        number = len(list(tmp_path.iterdir()))
        kept = TranslationLog(tmp_path / (log or f"{number}.jsonl"))
        return Translator(model, Route("tiny", source, target), Pivots(**options), kept)

    return build


def asked(monkeypatch, model):
    """The texts' numbers of every batch that the model is asked for from now on."""
    sizes = []
    generate = model.generate
    monkeypatch.setattr(model, "generate", lambda ids, *rest: sizes.append(len(ids)) or generate(ids, *rest))
    return sizes


@pytest.mark.parametrize("kind", ["marian", "nllb"])
@pytest.mark.parametrize("beams", [1, 3])
def test_a_batch_gives_what_each_text_gives_alone(kind, beams, translator, request, monkeypatch):
    model = request.getfixturevalue(kind)
    way = {"model": model, "beams": beams} | ({"source": "eng_Latn", "target": "fra_Latn"} if kind == "nllb" else {})
    texts = short_texts()
    texts = [texts[3], *texts, texts[0]]
    sizes = asked(monkeypatch, model)
    together = translator(**way, batch_tokens=100)(texts)
    assert max(sizes) > 3 and sum(sizes) == len(set(texts))
    alone = translator(**way, batch_tokens=1)
    assert together == [found for text in texts for found in alone([text])]
    assert set(sizes[-len(set(texts)) :]) == {1}
    assert len({found.text for found in together}) > len(set(texts)) * 2 / 3


def test_one_text_is_what_the_model_generates_by_hand(translator, marian):
    text = short_texts()[0]
    (found,) = translator(beams=2)([text])
    ids = marian.tokenizer(text, return_tensors="pt")["input_ids"]
    best = marian.model.generate(ids, num_beams=2, do_sample=False, max_length=POSITIONS)[0]
    assert found == Translation(marian.tokenizer.decode(best, skip_special_tokens=True), ended=True)
    assert found.text


def test_batches_keep_to_the_budget(translator, marian, monkeypatch):
    widths = []
    generate = marian.generate
    monkeypatch.setattr(
        marian, "generate", lambda ids, *rest: widths.append([len(x) for x in ids]) or generate(ids, *rest)
    )
    translator(batch_tokens=60, beams=1)(short_texts())
    assert all(max(lengths) * len(lengths) <= 60 for lengths in widths)
    assert sum(map(sum, widths)) / sum(max(lengths) * len(lengths) for lengths in widths) > 0.8


@pytest.mark.parametrize("kind", ["marian", "nllb"])
def test_what_does_not_end_is_stopped_at_its_own_length_and_told(kind, request, monkeypatch):
    model = request.getfixturevalue(kind)
    monkeypatch.setattr(translation_model, "MORE", 2)
    texts = ["Headlines in", "Trumpets blared", short_texts()[2]]
    ids = [model.token_ids(text) for text in texts]
    limits = [3 * len(text) + 2 for text in ids[:2]] + [model.longest - 1]
    assert limits[0] < limits[1] < limits[2]
    target = model.language("fra_Latn") if kind == "nllb" else None
    written = []
    generate = model.model.generate
    monkeypatch.setattr(model.model, "generate", lambda **k: written.append(generate(**k)) or written[-1])
    assert any(one.ended for one in model.generate(ids, 2, target))
    monkeypatch.setattr(model.model.generation_config, "sequence_bias", [[[model.tokenizer.eos_token_id], -99.0]])
    found = model.generate(ids, 2, target)
    assert [int((row[1:] != model.tokenizer.pad_token_id).sum()) for row in written[-1]] == limits
    assert not any(one.ended for one in found)  # though Marian's own settings force an end at the last position
    assert all(one.text for one in found)
    assert model.generate(ids[:1], 2, target) == found[:1]


def test_quotes_and_dashes_are_made_plain_as_before_training(marian, monkeypatch):
    read = []
    tokenizer = marian.tokenizer
    monkeypatch.setattr(type(tokenizer), "_tokenize", lambda _, text: read.append(text) or ["a"])
    marian.token_ids("“Go” — he said…")
    assert read == ['"Go" - he said...']


def test_nllb_writes_the_language_asked_for_and_reads_the_one_given(translator, nllb):
    texts = short_texts(6)
    there = translator(nllb, "eng_Latn", "fra_Latn")
    back = translator(nllb, "fra_Latn", "eng_Latn")
    first = there(texts)
    assert nllb.token_ids("A ship.")[0] == nllb.language("eng_Latn")
    home = back(texts)
    assert nllb.token_ids("A ship.")[0] == nllb.language("fra_Latn")
    assert first != home
    assert translator(nllb, "eng_Latn", "fra_Latn")(texts) == first
    assert translator(nllb, "eng_Latn", "rus_Cyrl")(texts) != first
    ids = [nllb.token_ids(text) for text in texts]
    written = []
    generate = nllb.model.generate
    nllb.model.generate = lambda *a, **k: written.append(generate(*a, **k)) or written[-1]
    try:
        nllb.generate(ids, 2, nllb.language("rus_Cyrl"))
    finally:
        del nllb.model.generate
    assert {row[1] for row in written[0].tolist()} == {nllb.language("rus_Cyrl")}


def test_a_text_that_is_too_long_is_divided_and_nothing_of_it_lost(translator, marian):
    words = [f"word{number}" for number in range(26)]
    long, way = " ".join(words), translator(beams=1)
    ids = {}
    pieces = list(way._pieces(long, ids))
    assert " ".join(pieces).split() == words and len(pieces) > 2
    assert all(len(ids[piece]) <= marian.longest for piece in pieces)
    (found, other, _) = way([long, "A ship.", long])
    assert way.divided == 1
    assert found.text == " ".join(one.text for one in translator(beams=1)(pieces))
    assert other == translator(beams=1)(["A ship."])[0]
    solid = "x" * 90
    assert "".join(translator()._pieces(solid, {})) == solid


def test_empty_texts_are_not_asked_for(translator, marian, monkeypatch):
    sizes = asked(monkeypatch, marian)
    found = translator()(["", "A ship.", "  "])
    assert found[0] == found[2] == Translation("", ended=True)
    assert sizes == [1]
    assert translator()([]) == []


def test_nothing_is_made_twice(translator, marian, nllb, monkeypatch):
    texts = short_texts(8)
    sizes = asked(monkeypatch, marian)
    first = translator(log="kept.jsonl")(texts[:5])
    assert sum(sizes) == 5
    assert translator(log="kept.jsonl", batch_tokens=9)(texts)[:5] == first
    assert sum(sizes) == 8
    translator(log="kept.jsonl", beams=2)(texts[:5])
    assert sum(sizes) == 13  # another search, other translations
    others = asked(monkeypatch, nllb)
    for target in ("fra_Latn", "rus_Cyrl", "fra_Latn"):
        translator(nllb, "eng_Latn", target, log="kept.jsonl")(texts[:5])
    assert sum(others) == 10


def test_a_model_is_known_by_its_weights_and_not_by_its_name(marian, tmp_path):
    again = TranslationModel(tiny_marian(tmp_path / "again"), CPU)
    assert again.digest == marian.digest
    again = TranslationModel(tiny_marian(tmp_path / "again", seed=1), CPU)
    assert again.digest != marian.digest
    again = TranslationModel(tiny_marian(tmp_path / "again", ends=9.0), CPU)  # a setting of the search alone
    assert again.digest != marian.digest


def test_a_log_that_was_cut_off_gives_back_all_whole_lines(translator, tmp_path, marian, monkeypatch):
    texts = short_texts(6)
    first = translator(log="kept.jsonl", batch_tokens=1)(texts)
    path = tmp_path / "kept.jsonl"
    whole = path.read_bytes()
    assert [json.loads(line)["text"] for line in whole.splitlines()] == sorted(
        texts, key=lambda text: -len(marian.token_ids(text))
    )
    path.write_bytes(whole[:-9])
    sizes = asked(monkeypatch, marian)
    again = translator(log="kept.jsonl")
    assert (len(again.log), again.log.broken) == (5, 1)
    assert again(texts) == first
    assert sum(sizes) == 1
    again.log.close()
    last = TranslationLog(path)
    assert (len(last), last.broken) == (6, 1)
    last.close()


@pytest.mark.parametrize(
    "content", ["not a log\n", '{"key": 1, "translation": "a", "ended": true}\n', "[1]\n", '"a"\n']
)
def test_another_file_is_no_log_and_stays(content, tmp_path):
    path = tmp_path / "mine.jsonl"
    path.write_text(content)
    with pytest.raises(DataError, match=r"mine\.jsonl is no log of translations: move it away"):
        TranslationLog(path)
    assert path.read_text() == content


def test_a_log_that_cannot_be_written_is_told(tmp_path):
    (tmp_path / "folder.jsonl").mkdir()
    with pytest.raises(OptionError, match=r"cannot write .*folder\.jsonl"):
        TranslationLog(tmp_path / "folder.jsonl")


def test_models_that_cannot_translate_are_refused(tiny, tmp_path):
    for name, message in (
        (tiny(), "it is a bert; a Marian or an NLLB model is needed"),
        (str(tmp_path), "the folder can't be loaded"),
        ("nobody/opus-mt-en-xx", "there is no such folder, and the hub did not give it"),
    ):
        with pytest.raises(ModelError, match=message):
            TranslationModel(name, CPU)
    several = tiny_marian(tmp_path / "several", codes=(">>fra<<", ">>ita<<"))
    with pytest.raises(ModelError, match="several languages; name one of a single pair"):
        TranslationModel(several, CPU)


def test_languages_that_nllb_does_not_know_are_refused(translator, nllb):
    for way in (("eng_Latn", "hin_Deva"), ("hin_Deva", "eng_Latn")):
        with pytest.raises(ModelError, match="it knows no language hin_Deva"):
            translator(nllb, *way)


@pytest.mark.parametrize("package", ["sentencepiece", "sacremoses"])
def test_packages_of_the_tokenizer_are_asked_for_by_name(package, marian, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, package, None)
    with pytest.raises(MissingExtraError, match=rf"{package} is not installed: pip install 'narrlit\[translate\]'"):
        TranslationModel(marian.name, CPU)


def test_a_lack_of_memory_names_the_option_and_keeps_what_is_done(translator, marian, monkeypatch):
    generate, batches = marian.generate, []

    def full(ids, *rest):
        batches.append(ids)
        if len(batches) == 2:
            raise torch.OutOfMemoryError
        return generate(ids, *rest)

    monkeypatch.setattr(marian, "generate", full)
    way = translator(batch_tokens=50, log="kept.jsonl")
    with pytest.raises(OptionError, match=r"--batch-tokens 50: .* does not fit the memory"):
        way(short_texts())
    assert len(way.log) == len(batches[0])
