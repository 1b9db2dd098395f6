"""Sentences of invented prose, one rule a row, and what holds for any text."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from narrlit.preprocessing.sentences import split_sentences

# A bar stands where one sentence ends and the next begins.
TABLE = {
    "plain": ["He came.| She left!| Why? |Nobody knew.", "no stop at all", "One sentence."],
    "titles": [
        "Mr. Lee and Mrs. Dee met Dr. No.| They ate.",
        "MR. SMITH met Lt. Col. Rex.| He bowed.",
        "Prof. Ada saw Gen. Lee on Mt. Fuji.",
        "Mr.Smith spoke.",
    ],
    "streets and saints": ["She lives on Baker St.| The man next door is mad.", "St. Anna of St. Ives wept."],
    "initials": [
        "J. R. R. Tolkien wrote it.",
        "J.R.R. Tolkien wrote it.| He smoked.",
        "John F. Kennedy came.",
        "They met Malcolm X.| He spoke.",
        "It is by I. M. Pei.",
        "So do I.| Anna left.",
        "George A. A. Romero",
    ],
    "acronyms": [
        "He left the U.S.| He came back.",
        "The U.S. Army came to Washington D.C. in May.",
        "She has a Ph.D.| Her son has none.",
    ],
    "names that end in a stop": [
        "Sammy Davis Jr. Show",
        "It was Davis Jr.| He sang.",
        "Acme Inc. Europe fails.",
        "He works for Acme Inc.| They fire him.",
    ],
    "links": ["Beasts, e.g. Bears, fight, i.e. They bite.", "Kong vs. Godzilla, cf. Roe v. Wade."],
    "numbers": [
        "No. 5 is alive on p. 12 of Vol. 3.",
        "No.| He would not.",
        "On Oct. 5 he fell.| It was in Oct.| Anna wept.",
        "He has 3.5 pounds and $2.50.| 20 men want it.",
        "He was born in 1990.| 5 years later he sang.",
    ],
    "times": ["At 5 p.m. Eastern he rose.", "He rose at 5 a.m.| Anna slept.", "At 5 p.m. he rose."],
    "etc.": ["Dogs, cats, etc. and so on.", "Dogs, cats, etc.| Anna had all."],
    "quotes and brackets": [
        '"I left."| Then she came.',
        "“I left.” |“Why?” |‘No.’| He wept.",
        "(He left.)| Anna (the cook) stayed (alone).| Bob came.",
        '"Who is there?" he asked.| Nobody.',
        '"Help!" Anna cried.| "Fire!"| Anna Lee Doe ran.',
        '"Help!" Anna Lee cried.',
        '"Stop!"| "Never!"',
        'He said "no."| "Yes," she said.',
        'He left. "',
    ],
    "runs": ["What?!| No!!!| Really...?| Yes.", "Oklahoma! (1955) is loud.", "Wait!? he said."],
    "ellipses": [
        "He waits... and waits.",
        "He waits…| Then she comes.",
        "He waits...| The end.",
        "It was... Anna.",
        "It was . . . Anna.| He waits. . .| Then he dies.",
        "I... I know.",
        "He is gone....| Anna weeps.",
        "He is gone….| Anna weeps.",
        "In 1990... 20 men left.",
        "Wait... what?",
    ],
    "missing spaces": [
        "It ended.|Then he left.",
        "It ended!|Then he left.",
        "It ended.|I left.",
        "He left.”|Then she did.",
        "See Node.JS or a.B or example.com now.",
        "It ended...|Then he left.",
        "THE END.Then",
    ],
    "line breaks": [
        "He came\nand left.",
        "He came.\n|She left.",
        "A heading\n\n|he came",
        "A heading\n \t\n|\nHe came",
        "One\r\n\r\n|Two",
        "One\n\n|* * *\n\n|Two",
    ],
    "lists": [
        "They need:\n|- bread\n|- wine.",
        "1. The hero leaves.\n|2. He fights.\n|3) He wins",
        "a) bread\n|b) wine",
        "1. He came. |2. He left.",
        "• bread\n|• wine",
        "In\n1990 he left - he said - for ever.",
    ],
    "small letters": ["He died. then he rose.", "He met k.d. lang."],
    "other scripts and signs": [
        "Да.| Нет.| 他来了.| 她走了",
        "He won! 🎉",
        "Élan!| Évora came.",
        "He paid.| $5 was enough.",
    ],
    "stops of other scripts": [
        "狐走了。|狼留下！|为什么？|没人知道",
        "狐は言った。|「帰れ！」と狼は言った。|「いやだ。」|狐は去った。",
        "狐は３．５円を払った．|去った。",
        "狐说了……然后走了!|他笑了",
        "लोमड़ी आई।| वह गई॥| क्यों? |कोई नहीं।",
        "جاء الثعلب؟| نعم۔| ثم رحل، وقال: نعم.",
        "ቀበሮ መጣ።| ሄደ።",
        "មាន\u200bកញ្ជ្រោង។ |វា\u200bទៅ។",
        "มีหมาจิ้งจอก| มันหิวมาก| ทุกๆ วันมันเดิน ๕ ลี้",
        "Ήρθε η αλεπού;| Ναι.",
        "მელა მოვიდა.| ის წავიდა.",
    ],
    "quotes of other languages": [
        "„Komm mit!“| Dann ging er.| »Nein!«| Sie blieb.| »Ja«, rief er.",
        "« Viens ! »| Puis il partit.| « Non. »| Elle resta.",
    ],
}
ROWS = [(name, row) for name, rows in TABLE.items() for row in rows]


@pytest.mark.parametrize(("name", "row"), ROWS, ids=[f"{name}: {row[:20]!r}" for name, row in ROWS])
def test_sentences_end_at_the_bars(name, row):
    assert split_sentences(row.replace("|", "")) == [part.strip() for part in row.split("|")], name


WORDS = ["Mr.", "I", "A", "the", "The", "U.S.", "1.", "No.", "said", "É", "他", "🎉", "J.", "e.g.", "a)", "- "]
MARKS = [*'….!"”)( ', *"\n\t\x1c\x85\u2028", "...", ". . .", "?!", "\n\n", "\r\n"]
PIECES = st.sampled_from(WORDS + MARKS)


@given(st.one_of(st.text(), st.lists(PIECES).map("".join)))
@example("\x1f.\x1c")
@example('a. "')
def test_no_character_is_lost_and_no_sentence_is_empty(text):
    found = split_sentences(text)
    assert "".join("".join(found).split()) == "".join(text.split())
    assert all(part and part == part.strip() for part in found)
    assert bool(found) == bool(text.strip())


@given(st.lists(PIECES).map("".join), st.lists(PIECES).map("".join))
def test_a_blank_line_always_ends_a_sentence(first, second):
    assert split_sentences(f"{first}\n\n{second}") == split_sentences(first) + split_sentences(second)


@pytest.mark.parametrize("unit", ["! ", ". ", "\n ", '."', "1. ", "I... "])
def test_time_grows_linearly_with_the_length(unit):
    # Twenty thousand repeats take a moment, and minutes where a rule looks back over all that it has read.
    text = unit * 20_000
    assert "".join("".join(split_sentences(text)).split()) == "".join(text.split())
