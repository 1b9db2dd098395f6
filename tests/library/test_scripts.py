"""A collection of stories in many scripts with a multilingual encoder: search, passages, words and explanations."""

import json

import pytest
from tiny_models import write_multilingual_model

import narrlit
from narrlit.explore.passages import place_all

STORIES = {
    "zh": "从前有一只狐狸。它在山上看见一只乌鸦！乌鸦嘴里有一块肉。狐狸说：“你唱得真好听。”"
    "乌鸦张开嘴，肉掉了下来。狐狸跑了。第二天狐狸又来了。它请鹤吃饭，汤放在盘子里，鹤喝不到。后来鹤请狐狸吃饭，汤放在瓶子里，狐狸也喝不到。",
    "ja": "昔、狐がいました。狐は木の上に烏を見ました。「歌がとても上手ですね！」と狐は言いました。"
    "烏は口を開けて、肉を落としました。狐は逃げました。次の日、狐は鶴を食事に招きました。スープは皿に入っていて、鶴は飲めませんでした。",
    "hi": "एक लोमड़ी थी। उसने पेड़ पर एक कौआ देखा। कौए के मुँह में रोटी थी। लोमड़ी बोली कि तुम बहुत अच्छा गाते हो॥ "
    "कौए ने मुँह खोला। रोटी गिर गई। लोमड़ी रोटी लेकर भाग गई।",
    "ar": "كان يا ما كان ثعلب جائع. هل رأى الثعلب الغراب؟ نعم، رأى غرابا على شجرة في فمه جبنة. "
    "قال له: ما أجمل صوتك! فتح الغراب فمه وسقطت الجبنة. أخذ الثعلب الجبنة وهرب إلى الغابة۔ وبكى الغراب.",
    "th": "กาลครั้งหนึ่งมีหมาจิ้งจอกหิวโหย มันเห็นอีกาคาบเนื้ออยู่บนต้นไม้ หมาจิ้งจอกบอกว่าเสียงของเจ้าไพเราะมาก อีกาอ้าปากร้องเพลง เนื้อก็ตกลงมา",
    "de": "Es war einmal ein Fuchs. Der sah einen Raben auf einem Baum. „Wie schön du singst!“ "
    "Da öffnete der Rabe den Schnabel. Das Fleisch fiel herab. Der Fuchs lief damit in den Wald.",
    "en": "A fox was hungry. He saw a crow in a tree with cheese in its beak. “How well you sing!” he said. "
    "The crow opened its beak, and the cheese fell. The fox ran away with it into the wood.",
}
SENTENCES = {
    "zh": "乌鸦嘴里有一块肉。狐狸说：“你唱得真好听。”",
    "ja": "狐は逃げました。次の日、狐は鶴を食事に招きました。",
    "hi": "कौए के मुँह में रोटी थी।",
    "ar": "هل رأى الثعلب الغراب؟",
    "th": "อีกาอ้าปากร้องเพลง",
}
WORDS = {"zh": "狐狸", "ja": "上手", "hi": "रोटी", "ar": "جبنة", "th": "อีกา", "de": "Rabe", "en": "cheese"}


@pytest.fixture(scope="module")
def stories(tmp_path_factory):
    """The stories of one file, with passages, and what was said when they were read."""
    folder = tmp_path_factory.mktemp("scripts")
    rows = [json.dumps({"id": id, "text": text}) for id, text in STORIES.items()]
    (folder / "s.jsonl").write_text("\n".join(rows))
    encoder = narrlit.load(write_multilingual_model(folder), long="windows")
    return narrlit.Collection.read(folder / "s.jsonl", encoder)


def test_each_story_has_passages_in_its_text(stories):
    passages = stories.store.passages()
    for (id, text), split in zip(STORIES.items(), passages, strict=True):
        assert len(split.texts) > 1, id
        assert "".join("".join(split.texts).split()) == "".join(text.split())
        places = [text[placed.start : placed.end] for placed in place_all(text, split.texts)]
        assert places == split.texts, id


@pytest.mark.parametrize("id", SENTENCES)
def test_a_passage_of_a_story_is_found_and_shown(stories, id):
    best = stories.search(SENTENCES[id], k=1).table().iloc[0]
    assert best.id == id
    assert SENTENCES[id] in best.snippet


@pytest.mark.parametrize("id", WORDS)
def test_a_word_finds_the_stories_that_have_it(stories, id):
    best = stories.search(WORDS[id], k=1, measure="lexical").table().iloc[0]
    assert best.id == id
    assert best.similarity > 0


def test_links_of_an_explanation_are_the_similarity(stories):
    pair = narrlit.explain("zh", "ja", stories=stories).pair
    assert pair.links["share"].sum() == pytest.approx(pair.score)
    assert "".join(pair.passages[0]) == STORIES["zh"]


def test_several_languages_are_said_before_they_are_embedded(tmp_path, stories, capsys):
    rows = [json.dumps({"text": STORIES[id]}) for id in ("ja", "hi", "ar", "ar")]
    (tmp_path / "s.jsonl").write_text("\n".join(rows))
    narrlit.Collection.read(tmp_path / "s.jsonl", stories.encoder)
    said = capsys.readouterr().err
    assert "the stories are in several languages (50 % ar, 25 % ja, 25 % hi)" in said
