"""What the rules take for a name, and for what kind of name."""

import pytest

from narrlit.text.pseudonyms.rules import Rules
from narrlit.text.pseudonyms.tokens import tokens


def names(text):
    (found,) = Rules().find([text])
    return [text[mention.start : mention.end] for mention in found]


def kinds(text):
    (found,) = Rules().find([text])
    return {text[mention.start : mention.end]: mention.kind for mention in found}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        # capitals that sentences and quotations lend
        ("Rain falls. The dog barks. Running home, he fell.", []),
        ('He cried: "Stop!" and she asked, "Who is there?"', []),
        ("Doctors tell him the truth. Bodies pile up. Chaos erupts.", []),
        ("Vesna, a nurse, sings.", ["Vesna"]),
        ("Vesna (a nurse) sings.", ["Vesna"]),
        ("Ormond's dog barks.", ["Ormond"]),
        ("Ormond has a dog.", ["Ormond"]),
        ("Ormond eventually leaves.", ["Ormond"]),
        ("He met Ormond. Ormond waved gently.", ["Ormond", "Ormond"]),
        ("Carpenter Ulla Brandt works.", ["Ulla Brandt"]),
        ("Desperate, Ulla flees.", ["Ulla"]),
        ("A rose for Rose. Rose smiles.", ["Rose", "Rose"]),
        ("Hope left. They lost hope.", []),
        ("Her sister Hope left. Hope smiles, and they lost hope.", ["Hope", "Hope"]),
        # titles, initials, particles, apostrophes, hyphens, numbers
        ("Mr. Bell met Prof. J. R. Stone and King Olaf II.", ["Bell", "J. R. Stone", "Olaf II"]),
        ("The King left. The Captain sent the Captain's dog.", []),
        ("She loves Ludwig van Beren and Omar al-Rashid.", ["Ludwig van Beren", "Omar al-Rashid"]),
        ("They rob Jean d'Arc.", ["Jean d'Arc"]),
        ("O'Brien and Kang-soo fear Marquis de Brisson.", ["O'Brien", "Kang-soo", "de Brisson"]),
        ("The Texas-based firm hired an ex-Beatle and a Swiss-born cook.", ["Texas", "Beatle"]),
        ("They flew Vostok 6 to Area 51 in 1963.", ["Vostok 6", "Area 51"]),
        ("We saw Diana \"Sugar\" Hale and the \"Golden\" gate.", ['Diana "Sugar" Hale']),
        # several words
        ("He left the Duke of Varna and Joan of Arc.", ["Varna", "Joan of Arc"]),
        ("He left the Tower of London.", ["Tower of London"]),
        ("She joined the French Foreign Legion, not the French.", ["French Foreign Legion"]),
        ("An American, Jim Doyle, met the Zulu girl Nomsa.", ["Jim Doyle", "Nomsa"]),
        ("In London Esi sang with Sid and Nancy.", ["London", "Esi", "Sid", "Nancy"]),
        ("The ambassador knows Anna's Boris and Anna's Hospital.", ["Anna", "Boris", "Anna's Hospital"]),
        # what stays
        ("In May the spring of May 1968 seemed near.", []),
        ("On Monday, May 3, before Christmas Eve and World War II, I, too, spoke German.", []),
        ("He prays to God and believes in Islam, Communism and the Bible.", []),
        ("SHE NEVER SAW OTTO AGAIN. Then Otto came.", ["OTTO", "Otto"]),
        ("STOP THE TRAIN. He read the FBI file, a TV guide and NOVEMBER.", ["FBI"]),
        ("Character_A and Location_1 wait for Entity_3.", []),
        ("", []),
    ],
)  # fmt: skip
def test_names(text, found):
    assert names(text) == found


@pytest.mark.parametrize(
    ("text", "name", "kind"),
    [
        ("He met Dr. Brisk.", "Brisk", "Character"),
        ("His wife Ulwen left.", "Ulwen", "Character"),
        ("The baker's brother, Ulwen, left.", "Ulwen", "Character"),
        ("She knows Ulwen (played by nobody).", "Ulwen", "Character"),
        ("He, once Ulwen (Jo Best), left.", "Jo Best", "Character"),
        ("She knows Ulwen, a retired camp doctor.", "Ulwen", "Character"),
        ("They live in Ulwen.", "Ulwen", "Location"),
        ("They confide in Ulwen.", "Ulwen", "Character"),
        ("They sat in Ulwen's kitchen.", "Ulwen", "Character"),
        ("They travel to Ulwen.", "Ulwen", "Location"),
        ("They gave it to Ulwen.", "Ulwen", "Character"),
        ("They love Ulwen, where it rains.", "Ulwen", "Location"),
        ("They love Ulwen, a town in the hills.", "Ulwen", "Location"),
        ("The king of Ulwen sleeps.", "Ulwen", "Location"),
        ("A friend of Ulwen sleeps.", "Ulwen", "Character"),
        ("The port of Ulwen sleeps.", "Ulwen", "Location"),
        ("They crossed the Ulwen River.", "Ulwen River", "Location"),
        ("They crossed Lake Ulwen.", "Lake Ulwen", "Location"),
        ("They saw France.", "France", "Location"),
        ("They founded Ulwen Industries.", "Ulwen Industries", "Organization"),
        ("They founded the University of Ulwen.", "University of Ulwen", "Organization"),
        ("The MI6 and the KGB knew.", "KGB", "Organization"),
        ("They sailed the Ulwen.", "Ulwen", None),
        ("They flew Ulwen 7.", "Ulwen 7", None),
    ],
)
def test_kinds(text, name, kind):
    assert kinds(text)[name] == kind


def test_a_name_with_votes_elsewhere_gets_no_guess():
    (found,) = Rules().find(["Ulwen was old. They lived in Ulwen."])
    assert [mention.kind for mention in found] == [None, "Location"]


def test_texts_are_looked_at_one_by_one():
    one, other = "He met Ormond.", "Ormond waved gently."
    assert [len(found) for found in Rules().find([one, other])] == [1, 0]


def test_tokens_know_their_places():
    text = "“Help!” Anna’s ex-friend said: “No.” Then\nthe Smiths' dog (Bo) ran."
    found = tokens(text)
    assert [text[token.start : token.end] for token in found] == [token.word for token in found]
    assert [token.word for token in found if token.first] == ["Help", "Anna", "No", "Then", "the"]
    assert [token.word for token in found if token.owning] == ["Anna", "Smiths"]
    assert [token.word for token in found if token.capital] == ["Help", "Anna", "No", "Then", "Smiths", "Bo"]
