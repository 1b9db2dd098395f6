import pytest

from narrlit.data.storyworld import StoryWorld
from narrlit.text.language import language_of, same_language

TEXTS = {
    "English": "The sailor had not seen the shore for a year, and he wept when it came out of the fog.",
    "German": "Der Seemann hatte die Küste ein Jahr lang nicht gesehen, und er weinte, als sie aus dem Nebel kam.",
    "French": "Le marin n'avait pas vu la côte depuis un an, et il pleura quand elle sortit du brouillard.",
    "Spanish": "El marinero no había visto la costa en un año, y lloró cuando la vio salir de la niebla con el día.",
    "Italian": "Il marinaio non aveva visto la costa per un anno, e pianse quando la vide uscire dalla nebbia.",
    "Portuguese": "O marinheiro não via a costa há um ano, e chorou quando ela saiu do nevoeiro com o dia, mas em paz.",
    "Dutch": "De zeeman had de kust een jaar niet gezien, en hij huilde toen het land uit de mist kwam met het licht.",
    "Polish": "Marynarz nie widział brzegu od roku i zapłakał, że to już koniec, jak on był na morzu za długo.",
    "CYRILLIC": "Моряк не видел берега целый год и заплакал, когда тот вышел из тумана.",
    "CJK": "水手一年没有看见海岸，当它从雾中出现时，他哭了。",
    "DEVANAGARI": "नाविक ने एक साल से तट नहीं देखा था।",
}


@pytest.mark.parametrize(("language", "text"), TEXTS.items())
def test_languages_are_told_by_script_and_commonest_words(language, text):
    assert language_of(text) == language


def test_languages_differ_from_each_other_and_agree_with_themselves():
    for language, text in TEXTS.items():
        for other, another in TEXTS.items():
            assert same_language(text, another) == (language == other), (language, other)


@pytest.mark.parametrize("text", ["", "...", "Oslo, Bergen, Trondheim", "1914-1918", "The and of der und ist"])
def test_too_little_text_tells_no_language_and_agrees_with_all(text):
    assert language_of(text) is None
    assert same_language(text, TEXTS["English"])


def test_a_second_script_in_the_middle_is_another_language_and_a_single_letter_is_not():
    english = TEXTS["English"]
    assert not same_language(f"{english} 水手哭了。", english)
    assert same_language(f"{english} It was α.", english)
    assert same_language(f"{english} 水手哭了。", f"{english} 他走了。")  # the other has such letters, too


def test_invented_stories_are_english():
    texts = [story.text for t in StoryWorld(0).triples(100) for story in (t.anchor, t.positive, t.negative)]
    assert {language_of(text) for text in texts} <= {"English", None}
    assert sum(language_of(text) == "English" for text in texts) > 0.95 * len(texts)
