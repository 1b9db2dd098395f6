"""Whole texts: what comes out to the letter, twice, and back."""

import json
import re
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from narrlit.data.readers import read_triples
from narrlit.data.storyworld import StoryWorld
from narrlit.errors import OptionError
from narrlit.text.joined import Views, join, split
from narrlit.text.pseudonyms.mentions import Mention
from narrlit.text.pseudonyms.named import EVERYDAY, key_of
from narrlit.text.pseudonyms.options import Pseudonyms
from narrlit.text.pseudonyms.pseudonymiser import open_backend, pseudonymise
from narrlit.text.pseudonyms.replacing import restore
from narrlit.text.pseudonyms.rules import Rules

STORIES = Path(__file__).parents[2] / "assets/pseudonyms/stories.jsonl"
REAL = Path(__file__).parents[3].parent / "shared/data/nsnrl"
KINDS = {"PERSON": "Character", "PLACE": "Location", "ORGANIZATION": "Organization"}


def alone(*texts):
    return pseudonymise([[text] for text in texts], Rules(), progress=False)


def stories():
    return [json.loads(line) for line in STORIES.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("story", stories(), ids=lambda story: story["text"][:24])
def test_stories_to_the_letter(story):
    (group,) = alone(story["text"])
    assert group.texts == (story["pseudonymised"],)
    assert restore(group.texts[0], group.replacements[0]) == story["text"]
    assert alone(group.texts[0])[0].texts == group.texts


def test_entities_hold_the_forms_that_were_replaced():
    (group,) = alone("Mary Fenwick met Silas. FENWICK left, and Mary's dog stayed with Silas in Oslo.")
    assert group.texts == (
        "Character_A met Character_B. Character_A left, and Character_A's dog stayed with Character_B in Location_1.",
    )
    assert group.entities == {
        "Character_A": ("Mary Fenwick", "FENWICK", "Mary"),
        "Character_B": ("Silas",),
        "Location_1": ("Oslo",),
    }


def test_a_group_shares_its_placeholders_and_two_groups_do_not():
    texts = ["Anna waits for Boris.", "Boris waits for Clara in Oslo.", "Clara waits."]
    (together,) = pseudonymise([texts], Rules(), progress=False)
    assert together.texts == (
        "Character_A waits for Character_B.",
        "Character_B waits for Character_C in Location_1.",
        "Character_C waits.",
    )
    apart = [group.texts[0] for group in alone(*texts)]
    assert apart == [
        "Character_A waits for Character_B.",
        "Character_A waits for Character_B in Location_1.",
        "Character_A waits.",
    ]


def test_a_story_does_not_depend_on_the_stories_beside_it():
    texts = [story["text"] for story in stories()]
    assert [group.texts for group in alone(*texts)] == [alone(text)[0].texts for text in texts]


def test_placeholders_in_a_text_are_kept_and_not_given_again():
    (group,) = alone("Character_B met Anna and Boris in Oslo, near Location_1.")
    assert group.texts == ("Character_B met Character_A and Character_C in Location_2, near Location_1.",)


@pytest.mark.parametrize("story", stories(), ids=lambda story: story["text"][:24])
def test_the_first_text_leads_whatever_stands_beside_it(story):
    view = f"Zora Quill of Oslo reads this: {story['text'][::2]} Hope meets {story['text']}"
    (group,) = pseudonymise([[story["text"], view]], Rules(), progress=False, led=True)
    assert group.texts[0] == story["pseudonymised"]
    assert restore(group.texts[1], group.replacements[1]) == view
    (again,) = pseudonymise([group.texts], Rules(), progress=False, led=True)
    assert again.texts == group.texts


def test_texts_that_are_led_take_over_the_mapping_and_go_on_with_what_is_free():
    texts = ["Anna met Character_B.", "Boris loves Anna Lee.", "Anna and Boris."]
    (led,) = pseudonymise([texts], Rules(), progress=False, led=True)
    assert led.texts == (
        "Character_A met Character_B.",
        "Character_C loves Character_A.",
        "Character_A and Character_C.",
    )
    assert led.entities == {"Character_A": ("Anna", "Anna Lee"), "Character_C": ("Boris",)}


def test_views_stay_views():
    joined = join("Anna leaves Oslo.", Views("The grief of Anna.", "Anna packs. Anna flees to Rome.", "Anna rests."))
    (group,) = alone(joined)
    text, views = split(group.texts[0])
    assert text == "Character_A leaves Location_1."
    assert views == Views(
        "The grief of Character_A.", "Character_A packs. Character_A flees to Location_2.", "Character_A rests."
    )


class EveryCapital:
    """Finds one more capitalised word each time it looks: the last one, and calls it what its letter says."""

    def __init__(self):
        self.seen = []

    def find(self, texts):
        self.seen.append(list(texts))
        return [self._last(text) for text in texts]

    def _last(self, text):
        found, place = [], 0
        for word in text.split(" "):
            if word[:1].isupper() and "_" not in word:
                kind = {"L": "Location", "O": "Organization"}.get(word[0])
                found.append(Mention(place, place + len(word), kind))
            place += len(word) + 1
        return found[-1:]


def test_passes_go_on_until_nothing_is_found_and_ask_only_for_what_changed():
    finder = EveryCapital()
    done = pseudonymise([["Xu saw Li and Xu", "no name"], ["Li"]], finder, progress=False)
    assert [group.texts for group in done] == [("Entity_1 saw Location_1 and Entity_1", "no name"), ("Location_1",)]
    assert finder.seen == [
        ["Xu saw Li and Xu", "no name", "Li"],
        ["Entity_1 saw Li and Entity_1", "Location_1"],
        ["Entity_1 saw Location_1 and Entity_1"],
    ]
    assert done[0].entities == {"Entity_1": ("Xu",), "Location_1": ("Li",)}


WORDS = (
    "Anna Boris Lee Mary Ann Lee's London in the The of met Dr. Captain and , . \" ( ) king King O'Brien Will will "
    "Character_A Location_1 Entity_2 XIV USA Paris's\n[theme]\n d'Arc -"
)
words = st.sampled_from(WORDS.split(" "))


@given(st.lists(st.lists(words, max_size=14).map(" ".join), min_size=1, max_size=3))
def test_twice_is_once_and_back_is_the_letter(texts):
    (group,) = pseudonymise([texts], Rules(), progress=False)
    for before, after, made in zip(texts, group.texts, group.replacements, strict=True):
        assert restore(after, made) == before
        assert all(after[r.start : r.end] in group.entities for r in made)
    (again,) = pseudonymise([group.texts], Rules(), progress=False)
    assert again.texts == group.texts
    assert again.entities == {}


@given(st.text(max_size=80))
def test_any_text_comes_back(text):
    (group,) = pseudonymise([[text]], EveryCapital(), progress=False)
    assert restore(group.texts[0], group.replacements[0]) == text


def test_the_names_of_invented_stories_are_found():
    told = [
        s
        for seed in range(3)
        for t in StoryWorld(seed).triples(34, "train")
        for s in (t.anchor, t.positive, t.negative)
    ]
    found = known = right = of_kind = 0
    for story, group in zip(told, alone(*[story.text for story in told]), strict=True):
        kinds = {form: given.split("_")[0] for given, forms in group.entities.items() for form in forms}
        same = kinds.keys() & story.names.keys()
        found, known, right = found + len(kinds), known + len(story.names), right + len(same)
        of_kind += sum(kinds[name] == KINDS[story.names[name]] for name in same)
    assert len(told) > 300
    assert right >= 0.95 * found, "precision"
    assert right >= 0.95 * known, "recall"
    assert of_kind >= 0.8 * right, "kinds"


@pytest.mark.skipif(not REAL.is_dir(), reason="the task's data is not beside the checkout")
def test_real_stories_keep_no_form_of_a_name_that_was_replaced():
    texts = list(
        dict.fromkeys(t for triple in read_triples(REAL / "dev/dev_track_a.jsonl").records for t in triple.texts)
    )
    groups = alone(*texts)
    assert len(groups) == len(texts) == 479
    for text, group in zip(texts, groups, strict=True):
        (after,) = group.texts
        assert restore(after, group.replacements[0]) == text
        forms = [form for forms in group.entities.values() for form in forms if any(c.isupper() for c in form)]
        left = [match for form in forms for match in re.finditer(rf"(?<!\w){re.escape(form)}(?!\w)", after)]
        # A word of every day ("King", "Hope") may begin a sentence or a quotation and be no name there.
        begin = re.compile(r"(?:\A|[.!?…:\n][\W_]*|[\"“‘«])\Z")
        assert not [m for m in left if not (set(key_of(m.group())) <= EVERYDAY and begin.search(after[: m.start()]))]
    assert sum(bool(group.entities) for group in groups) > 400


def test_the_backend_none_is_none():
    assert isinstance(open_backend(Pseudonyms(backend="rules")), Rules)
    with pytest.raises(OptionError, match="choose rules, spacy or spacy\\+coref"):
        open_backend(Pseudonyms())


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"backend": "rules", "pipeline": "p"}, "pipeline p: rules reads none; choose spacy, or"),
        ({"backend": "rules", "coref_model": "c"}, "coref_model c: rules reads none; choose spacy\\+coref, or"),
        ({"backend": "spacy", "coref_model": "c"}, "coref_model c: spacy reads none; choose spacy\\+coref, or"),
    ],
)
def test_settings_that_nothing_reads_are_refused(settings, told):
    with pytest.raises(OptionError, match=told):
        Pseudonyms(**settings)
    assert Pseudonyms(**settings | {"backend": "none"}).scope == "story"


@pytest.mark.parametrize(
    ("backend", "given", "coref_model"), [("spacy", {}, None), ("spacy+coref", {"coref_model": "c"}, "c")]
)
def test_the_coreference_model_goes_to_its_backend_alone(monkeypatch, backend, given, coref_model):
    opened = []
    module = SimpleNamespace(open_spacy=lambda *arguments: opened.append(arguments))
    monkeypatch.setitem(sys.modules, "narrlit.text.pseudonyms.spacy_backend", module)
    open_backend(Pseudonyms(backend, pipeline="p", **given))
    assert opened == [("p", coref_model)]
