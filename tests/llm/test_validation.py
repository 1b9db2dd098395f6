from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from narrlit.errors import OptionError
from narrlit.llm.soundness import is_placeholder, is_refusal
from narrlit.llm.validation import CHECKS, Case, Measured, ValidationOptions, faults, overlap
from narrlit.prompts import load_prompt

ANCHOR = (
    "When the river rose, the old ferry stayed at its berth. Marta Kovac, who had run it since her father drowned, "
    "refused to cross. A doctor from Lindenau begged her, for there was fever on the other bank. Nobody had crossed in "
    "such water before. She went at night, alone, and lost the ferry on the way back. The village built her a bridge."
)
SOUND = (
    "A young cellist at the conservatory in Bergamo found that her scholarship came from the man who had ruined her "
    "grandfather. She kept playing. At the final audition he sat in the first row, and she chose the piece that his "
    "factory band had been forbidden to play. He left before the end. Ilaria won, and sent the money back to him."
)
GERMAN = (
    "Als der Winter kam, zog der Schmied mit seiner Tochter in die Stadt. Er hatte das Haus verloren und wollte nicht "
    "mehr auf dem Land arbeiten. Die Tochter fand eine Stelle in der Bäckerei, und er saß den ganzen Tag am Fenster. "
    "Im Frühling schmiedete er ein Gitter für die Kirche. Es war so schön, dass man ihn nicht mehr gehen ließ."
)
COPY = (
    "When the river rose, the old ferry stayed at its pier. Selma Brandt, who had run it since her father left, "
    "refused to sail. A doctor from Oberwald begged her, for there was fever on the other shore. Nobody had crossed in "
    "such water yet. She went at night, alone, and lost the ferry on the way home. The village built her a road."
)
PROMPT = load_prompt("negatives_theme").text
WIDE = ValidationOptions(length_ratio=1e9)  # for what is short or long by its nature


def case(story, **changes):
    given_case = Case(Measured(story), Measured(ANCHOR), (), Measured(PROMPT), ValidationOptions())
    return replace(given_case, **changes)


FAULTY = {
    "empty": [case(" \n", options=WIDE)],
    "broken characters": [
        case(f"{SOUND} \ud83d"),
        case(f"{SOUND}\x07"),
        case(SOUND.replace("He left", "He donâ€™t leave")),
    ],
    "refusal": [
        case(f"I'm sorry, but I can't write that. {SOUND}"),
        case(f"As an AI language model, I have no stories. {SOUND}"),
        case("I cannot assist with this request.", options=WIDE),
    ],
    "placeholder": [
        case("...", options=WIDE),
        case("<English story summary>", options=WIDE),
        case("string", options=WIDE),
        case("[A tale for children]", options=WIDE),
        case("your tale", options=WIDE, prompt=Measured("Give <your tale>.")),
        case("A tale of your own making", options=WIDE, prompt=Measured("Give <a tale of your own making>.")),
        case(SOUND.replace("Bergamo", "[city name]")),
        case(f"Lorem ipsum dolor sit amet. {SOUND}"),
        case(PROMPT, options=WIDE),
    ],
    "near-copy of the anchor": [case(COPY)],
    "sentence of the anchor": [case(f"{SOUND} Nobody  had\nCrossed in such water before.")],
    "name of the anchor": [
        case(SOUND.replace("Ilaria", "Marta")),
        case(SOUND.replace("Bergamo", "Lindenau")),
        case(SOUND.replace("Ilaria", "Kovac")),
        case(SOUND.replace("Ilaria", "Ilaria Lindenau")),
    ],
    "length": [
        case("A cellist won, and sent the money back to him."),
        case(f"{SOUND} And so on it went. {SOUND} {SOUND}"),
    ],
    "language": [case(GERMAN), case(SOUND.replace("He left before the end.", "他在结束之前就离开了音乐厅。"))],
    "duplicate": [
        case(SOUND, others=(Measured(GERMAN), Measured(SOUND))),
        case(SOUND.upper(), others=(Measured(SOUND.replace("Bergamo", "Parma").replace("Ilaria", "Paola")),)),
    ],
}


def test_every_reason_has_examples():
    assert list(FAULTY) == list(CHECKS)


@pytest.mark.parametrize(("reason", "example"), [(r, e) for r, examples in FAULTY.items() for e in examples])
def test_an_example_of_each_fault_that_this_check_alone_catches(reason, example):
    assert list(faults(example)) == [reason]


def test_a_sound_story_has_no_faults():
    others = (Measured(GERMAN), Measured(COPY))
    assert list(faults(case(SOUND, others=others))) == []


def test_options_move_the_bounds():
    share = overlap(Measured(COPY), Measured(ANCHOR))
    assert 0.4 < share < 0.8
    assert list(faults(case(COPY, options=ValidationOptions(max_overlap=share)))) == []
    named = case(SOUND.replace("Ilaria", "Marta"), options=ValidationOptions(allow_names=True))
    assert list(faults(named)) == []
    ratio = len(ANCHOR) / len(SOUND)
    for factor, expected in ((max(ratio, 1 / ratio) * 1.01, []), (max(ratio, 1 / ratio) * 0.999, ["length"])):
        assert list(faults(case(SOUND, options=ValidationOptions(length_ratio=factor)))) == expected


def test_the_anchor_itself_is_a_copy_whatever_the_bound():
    found = list(faults(case(ANCHOR.upper(), options=ValidationOptions(max_overlap=1))))
    assert "near-copy of the anchor" in found


@pytest.mark.parametrize(
    "options", [{"max_overlap": 1.2}, {"max_overlap": -0.1}, {"length_ratio": 1.0}, {"length_ratio": float("nan")}]
)
def test_bounds_out_of_range_are_refused(options):
    with pytest.raises(OptionError, match="needed"):
        ValidationOptions(**options)


@pytest.mark.parametrize(
    "text",
    [
        "I can't forget that summer, and neither could she.",
        "I am unable to sleep since the war, the captain wrote.",
        "The machine said: as an AI, it had no say.",
        "Sorry was the one word that he never learnt.",
    ],
)
def test_stories_in_the_first_person_are_no_refusals(text):
    assert not is_refusal(text)


@pytest.mark.parametrize("text", ["He told a story.", "Theme parks closed.", "The summary was wrong [sic]."])
def test_stories_that_speak_of_stories_are_no_placeholders(text):
    assert not is_placeholder(text, PROMPT)


WORDS = st.lists(st.sampled_from("ab"), max_size=30)  # so few that runs of five recur


@given(WORDS, WORDS)
def test_overlap_is_a_share_of_the_shorter_text_without_regard_to_case(one, other):
    first, second = Measured(" ".join(one)), Measured(",\n".join(other).upper())

    def grams(words):
        return {tuple(words[i : i + 5]) for i in range(len(words) - 4)} if len(words) > 4 else {tuple(words)}

    expected = len(grams(one) & grams(other)) / min(len(grams(one)), len(grams(other)))
    assert overlap(first, second) == overlap(second, first) == expected
    assert overlap(first, first) == 1
