"""Back-translation: batches change nothing, nothing is lost or made twice, and faults are found."""

import json

import pytest
import torch
from refusals import refused
from tiny_translators import POSITIONS, short_texts, tiny_marian, tiny_nllb

from narrlit.preprocessing.back_translation import (
    EMPTY,
    IDENTICAL,
    UNFINISHED,
    Translation,
    TranslationModel,
    back_translate,
)
from narrlit.preprocessing.pivots import Pivots, Route

CPU = torch.device("cpu")
WAYS = {"marian": Route("tiny"), "nllb": Route("tiny", "eng_Latn", "fra_Latn")}


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    return {"marian": tiny_marian(folder / "marian"), "nllb": tiny_nllb(folder / "nllb")}


@pytest.fixture
def model(folders, tmp_path):
    """model(kind): a tiny model with a log of its own."""
    return lambda kind="marian", log="log.jsonl": TranslationModel(folders[kind], CPU, tmp_path / log)


def by(change):
    return lambda texts: [Translation(change(text)) for text in texts]


def test_stories_are_translated_there_and_back_sentence_by_sentence():
    seen = []

    def there(texts):
        seen.extend(texts)
        return by(str.upper)(texts)

    texts = ["One came. Two went.\n\nThree stayed.", "Four left.", "Four  LEFT."]
    found = back_translate(
        texts, there, by(lambda text: text.replace("E", "3") if "FOUR" not in text else "four left.")
    )

    assert seen == ["One came.", "Two went.", "Three stayed.", "Four left.", "Four  LEFT."]
    assert [one.text for one in found] == ["ON3 CAM3. TWO W3NT. THR33 STAY3D.", "four left.", "four left."]
    assert [one.fault for one in found] == [None, IDENTICAL, IDENTICAL]


@pytest.mark.parametrize("way", ["there", "back"])
@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (lambda text: Translation("" if "Two" in text or not text else text[::-1]), EMPTY),
        (lambda text: Translation(text[::-1], ended="Two" not in text), UNFINISHED),
    ],
)
def test_one_faulty_sentence_makes_the_story_faulty(way, change, fault):
    ways = {"there": by(str), "back": by(str), way: lambda texts: [change(text) for text in texts]}
    found = back_translate(["Good day.", "One came. Two went."], **ways)
    assert [one.fault for one in found] == [None, fault]


@pytest.mark.parametrize("kind", ["marian", "nllb"])
@pytest.mark.parametrize("beams", [1, 3])
def test_a_batch_gives_the_same_translations_as_single_texts(kind, beams, model):
    texts = short_texts()
    texts = [texts[3], *texts, texts[0]]
    together = model(kind).translate(texts, WAYS[kind], beams, 100)
    alone = model(kind, "alone.jsonl")

    assert together == [alone.translate([text], WAYS[kind], beams, 1)[0] for text in texts]
    assert len({found.text for found in together}) > len(set(texts)) * 2 / 3


def test_a_translation_matches_the_models_own_generation(model):
    text, own = short_texts()[0], model()
    (found,) = own.translate([text], WAYS["marian"], 2, 100)
    ids = own.tokenizer(text, return_tensors="pt")["input_ids"]
    best = own.model.generate(ids, num_beams=2, do_sample=False, max_length=POSITIONS)[0]
    assert found == Translation(own.tokenizer.decode(best, skip_special_tokens=True), ended=True)


def test_endless_output_is_stopped_and_marked(model):
    own = model()
    own.model.final_logits_bias[0, own.tokenizer.eos_token_id] = -99
    assert not any(one.ended for one in own.translate(short_texts(3), WAYS["marian"], 2, 100))


def test_long_texts_are_split_and_empty_texts_remain_empty(model):
    own = model()
    long = " ".join(short_texts()[1].split() * 9)
    first, empty = own.translate([long, " "], WAYS["marian"], 1, 200)

    assert first.text
    assert empty == Translation("", True)
    assert len([json.loads(line)["text"] for line in own.log.read_text().splitlines()]) > 1


def test_nllb_translates_to_the_target_language_of_the_route(model):
    own, texts = model("nllb"), short_texts(5)
    first = own.translate(texts, WAYS["nllb"], 1, 100)
    assert own.translate(texts, Route("tiny", "eng_Latn", "rus_Cyrl"), 1, 100) != first
    assert own.translate(texts, WAYS["nllb"], 1, 100) == first
    with refused("unknown_language", language="xxx_Latn"):
        own.translate(texts, Route("tiny", "eng_Latn", "xxx_Latn"), 1, 100)


def test_a_log_is_resumed_after_a_kill_and_another_file_is_refused(model, tmp_path, monkeypatch):
    texts = short_texts()
    first = model()
    wanted = first.translate(texts, WAYS["marian"], 1, 30)
    lines = first.log.read_bytes().splitlines(keepends=True)
    first.log.write_bytes(b"".join(lines[:4]) + lines[4][:25])
    again, sizes = model(), []
    generate = again._generate
    monkeypatch.setattr(again, "_generate", lambda ids, *rest: sizes.append(len(ids)) or generate(ids, *rest))

    assert again.translate(texts, WAYS["marian"], 1, 30) == wanted
    assert sum(sizes) == len(lines) - 4
    assert sorted(first.log.read_bytes().splitlines(keepends=True)) == sorted(lines)
    # other beams, other work
    assert again.translate(texts, WAYS["marian"], 2, 30)
    assert sum(sizes) > len(lines)

    (tmp_path / "other.jsonl").write_text('{"text": "a"}\n')
    with refused("broken_translation_log"):
        model(log="other.jsonl")


@pytest.mark.parametrize(
    ("options", "refusal"),
    [
        ({"pivots": "fr,en"}, {"code": "invalid_pivots"}),
        ({"nllb": "n", "there": "m"}, {"code": "nllb_directions"}),
        ({"nllb": "n", "pivots": "xx"}, {"code": "unknown_pivot", "pivot": "xx"}),
        ({"there": "m"}, {"code": "no_place_for_pivot"}),
    ],
)
def test_invalid_pivots_are_refused(options, refusal):
    with refused(**refusal):
        Pivots(**options)
