"""Sample tales: eight types in three versions, short, with the type in no word but the plot."""

import re
from collections import Counter, defaultdict

from narrlit.data.tales import sample_tales

COLUMNS = ["file_name", "title", "country", "atu", "text"]


def test_eight_types_in_three_versions_from_different_countries():
    tales = sample_tales()
    countries = defaultdict(set)
    for tale in tales:
        assert list(tale) == COLUMNS
        countries[tale["atu"]].add(tale["country"])

    assert Counter(tale["atu"] for tale in tales) == dict.fromkeys(countries, 3)
    assert [len(names) for names in countries.values()] == [3] * 8
    assert all(re.fullmatch(r"\d{2,4}[A-Z]?", number) for number in countries)


def test_names_are_unique_and_safe_for_every_file_system():
    tales = sample_tales()
    assert len({tale["title"] for tale in tales}) == len({tale["file_name"] for tale in tales}) == 24
    assert all(re.fullmatch(r"[a-z_]+\.txt", tale["file_name"]) for tale in tales)


def test_tales_are_100_to_180_words_in_one_paragraph_of_plain_characters():
    for tale in sample_tales():
        assert 100 <= len(tale["text"].split()) <= 180, tale["title"]
        assert re.fullmatch(r"[A-Z][A-Za-z ,.;:?!'\"-]*[.\"]", tale["text"]), tale["title"]


def test_no_two_tales_share_six_words_in_a_row():
    owners = {}
    for tale in sample_tales():
        words = re.findall(r"[\w'-]+", tale["text"].lower())
        for start in range(len(words) - 5):
            assert owners.setdefault(tuple(words[start : start + 6]), tale["title"]) == tale["title"]
