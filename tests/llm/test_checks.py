import pytest
from hypothesis import given
from hypothesis import strategies as st

from narrlit.llm.checks import (
    NEGATIVE_CHECKS,
    VIEW_CHECKS,
    SourceStory,
    is_placeholder,
    is_refusal,
    ngram_overlap,
    proper_names,
)

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
WIDE = SourceStory(ANCHOR, length_ratio=1e9)  # for what is short or long by its nature
NEGATIVES = {
    "empty": [(" \n", WIDE)],
    "broken characters": [(f"{SOUND} \ufffd", None), (f"{SOUND}\x07", None), (f"{SOUND}\ud800", None)],
    "refusal": [
        (f"I'm sorry, but I can't write that. {SOUND}", None),
        (f"As an AI language model, I have no stories. {SOUND}", None),
        ("I cannot assist with this request.", WIDE),
    ],
    "placeholder": [
        ("...", WIDE),
        ("<English story summary>", WIDE),
        ("string", WIDE),
        ("Your story here.", WIDE),
        ("neg_theme", WIDE),
        ("[A tale for children]", WIDE),
        (SOUND.replace("Bergamo", "[city name]"), None),
        (f"Lorem ipsum dolor sit amet. {SOUND}", None),
    ],
    "near-copy of the anchor": [(COPY, None), (f"{SOUND} Nobody  had\tCrossed in such water before.", None)],
    "names of the anchor": [
        (SOUND.replace("Ilaria", "Marta"), None),
        (SOUND.replace("Bergamo", "Lindenau"), None),
        (SOUND.replace("Ilaria", "Then Kovac"), None),
    ],
    "length": [
        ("A cellist won, and sent the money back to him.", None),
        (f"{SOUND} And so on it went. {SOUND} {SOUND}", None),
    ],
    "language": [(GERMAN, None), (SOUND.replace("He left before the end.", "他在结束之前就离开了音乐厅。"), None)],
    "duplicate": [
        (SOUND, SourceStory(ANCHOR, [GERMAN, SOUND])),
        (SOUND, SourceStory(ANCHOR, [SOUND.replace("Bergamo", "Parma").replace("Ilaria", "Paola")])),
    ],
}
VIEWS = [
    "Duty outweighs fear.",
    "The river rises.",
    "The ferrywoman refuses to sail.",
    "A doctor pleads with her.",
    "She sails at night.",
    "The ferry is lost.",
    "The villagers honor her with a bridge.",
]
LAST_WORDS = "That is what the whole long tale tells. "
VIEW_FAULTS = {
    "empty": [*VIEWS[:-1], " "],
    "broken characters": [*VIEWS[:-1], "The \x1b[31mend."],
    "refusal": ["I'm sorry, but I can't help with that.", *VIEWS[1:]],
    "placeholder": [*VIEWS[:1], "Event 1", *VIEWS[2:]],
    "copy of the story": [ANCHOR, *VIEWS[1:]],
    "length": [" ".join(f"{LAST_WORDS}{number}" for number in range(40)), *VIEWS[1:]],
    "repetition": [*VIEWS[:3], VIEWS[1].upper(), *VIEWS[3:]],
    "language": [GERMAN, *VIEWS[1:2], *VIEWS[-1:]],
}


def faults(texts, source, checks):
    return [reason for reason, check in checks.items() if check(texts, source)]


@pytest.mark.parametrize(("reason", "example"), [(r, e) for r, examples in NEGATIVES.items() for e in examples])
def test_each_fault_of_a_negative_is_found_by_its_check_alone(reason, example):
    text, source = example
    assert faults([text], source or SourceStory(ANCHOR), NEGATIVE_CHECKS) == [reason]


@pytest.mark.parametrize("reason", VIEW_FAULTS)
def test_each_fault_of_views_is_found_by_its_check_alone(reason):
    assert faults(VIEW_FAULTS[reason], SourceStory(ANCHOR), VIEW_CHECKS) == [reason]


def test_a_valid_story_and_valid_views_have_no_faults():
    assert faults([SOUND], SourceStory(ANCHOR, [GERMAN, COPY]), NEGATIVE_CHECKS) == []
    assert faults(VIEWS, SourceStory(ANCHOR), VIEW_CHECKS) == []


def test_options_move_the_limits():
    named = SOUND.replace("Ilaria", "Marta")
    assert faults([named], SourceStory(ANCHOR, allow_names=True), NEGATIVE_CHECKS) == []
    ratio = max(len(ANCHOR), len(SOUND)) / min(len(ANCHOR), len(SOUND))
    for factor, expected in ((ratio * 1.01, []), (ratio * 0.999, ["length"])):
        assert faults([SOUND], SourceStory(ANCHOR, length_ratio=factor), NEGATIVE_CHECKS) == expected


def test_views_of_a_very_short_story_may_be_longer_than_it():
    assert faults(VIEWS, SourceStory("She sailed at night and lost the ferry."), VIEW_CHECKS) == []


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
    assert not is_refusal([text], WIDE)


@pytest.mark.parametrize("text", ["He told a story.", "Theme parks closed.", "The summary was wrong [sic]."])
def test_stories_about_stories_are_no_placeholders(text):
    assert not is_placeholder([text], WIDE)


def test_names_are_found_inside_sentences_only():
    assert proper_names("Then the man met Anna's aunt. When God left, he wept.") == {"Anna"}
    assert proper_names("She came. Nobody knew. “Go,” he said to John.") == {"John"}


WORDS = st.lists(st.sampled_from("ab"), max_size=30)  # so few that runs of five recur


@given(WORDS, WORDS)
def test_overlap_is_a_share_of_the_shorter_text_without_regard_to_case(one, other):
    def grams(words):
        return {tuple(words[i : i + 5]) for i in range(len(words) - 4)} if len(words) > 4 else {tuple(words)}

    first = " ".join(one)
    second = ",\n".join(other).upper()
    expected = len(grams(one) & grams(other)) / min(len(grams(one)), len(grams(other)))

    assert ngram_overlap(first, second) == ngram_overlap(second, first) == expected
    assert ngram_overlap(first, first) == 1
