import sys

import pytest

from narrlit.errors import DataError, MissingExtraError, ModelError
from narrlit.text.joined import Views, join
from narrlit.text.pseudonyms.mentions import Mention
from narrlit.text.pseudonyms.spacy_backend import SpacyNames, kind_of, open_spacy

spacy = pytest.importorskip("spacy", reason="spaCy is not installed (extra text)")

PEOPLE = ["Mira Toll", "Osk", "Jana", "Captain Brandt", "Wim"]
PLACES = ["Velden", "Port Azur", "Kolm", "Sarrow", "Tuva Bay"]
HOUSES = ["the Harbour Guild", "Norlund Bank", "the Lamp Society", "Tarn Mill", "Orsini Press"]
FRAMES = ["{0} sailed to {1} .", "In {1} , {0} worked for {2} .", "{2} sent {0} from {1} on Monday ."]


@spacy.Language.component("narrlit_tests_never")
def never(document):
    raise AssertionError("this pipe is not needed")


@spacy.Language.component("narrlit_tests_lemmas")
def lemmas(document):
    for token in document:
        token.lemma_ = token.text.lower()
    return document


def annotated(frame, person, place, house):
    text, entities = frame.format(person, place, house), []
    for part, label in ((person, "PERSON"), (place, "GPE"), (house, "ORG"), ("Monday", "DATE")):
        if part in text:
            entities.append((text.index(part), text.index(part) + len(part), label))
    return text, {"entities": entities}


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A recogniser that listens to a tok2vec of its own pipe, and beside it a pipe that must never run."""
    pipeline = spacy.blank("en")
    shape = {"width": 32, "depth": 2, "embed_size": 400, "window_size": 1, "maxout_pieces": 2, "subword_features": True}
    embed = {"@architectures": "spacy.HashEmbedCNN.v2", "pretrained_vectors": None, **shape}
    pipeline.add_pipe("tok2vec", config={"model": embed})
    listen = {"@architectures": "spacy.Tok2VecListener.v1", "width": 32, "upstream": "tok2vec"}
    parser = {"state_type": "ner", "extra_state_tokens": False, "hidden_width": 32, "maxout_pieces": 2}
    parser |= {"@architectures": "spacy.TransitionBasedParser.v2", "tok2vec": listen, "use_upper": True}
    pipeline.add_pipe("ner", config={"model": parser})
    cases = [annotated(frame, *names) for frame in FRAMES for names in zip(PEOPLE, PLACES, HOUSES, strict=True)]
    examples = [spacy.training.Example.from_dict(pipeline.make_doc(text), marks) for text, marks in cases]
    spacy.util.fix_random_seed(0)
    optimizer = pipeline.initialize(lambda: examples)
    for step in range(120):
        pipeline.update(examples[step % 3 :: 3], sgd=optimizer, drop=0.1)
    pipeline.add_pipe("narrlit_tests_never")
    folder = tmp_path_factory.mktemp("trained")
    pipeline.to_disk(folder)
    return str(folder)


@pytest.fixture
def ruled(tmp_path):
    """ruled(patterns): the folder of a pipeline that marks these (label, words) and nothing else."""

    def build(*patterns):
        pipeline = spacy.blank("en")
        pipeline.add_pipe("narrlit_tests_lemmas")
        ruler = pipeline.add_pipe("entity_ruler")
        ruler.add_patterns([{"label": label, "pattern": pattern} for label, pattern in patterns])
        pipeline.to_disk(tmp_path / "ruled")
        return str(tmp_path / "ruled")

    return build


def said(text, mentions):
    return [(text[mention.start : mention.end], mention.kind) for mention in mentions]


def test_a_trained_recogniser_votes_by_its_labels(trained):
    text = "Norlund Bank sent Captain Brandt from Tuva Bay on Monday ."
    other = "In Kolm , Jana worked for the Lamp Society ."
    first, empty, last = open_spacy(trained).find([text, "", other])
    assert said(text, first) == [("Norlund Bank", "Organization"), ("Brandt", "Character"), ("Tuva Bay", "Location")]
    assert empty == []
    assert said(other, last) == [("Kolm", "Location"), ("Jana", "Character"), ("Lamp Society", "Organization")]
    assert {mention.cluster for mention in first + last} == {None}


def test_a_text_is_read_by_itself(trained):
    texts = [annotated(frame, *names)[0] for frame in FRAMES for names in zip(PEOPLE, PLACES, HOUSES, strict=True)]
    finder = open_spacy(trained)
    assert finder.find(texts) == [finder.find([text])[0] for text in texts]
    assert finder.find([]) == []


@pytest.mark.parametrize(
    ("label", "kind"),
    [
        *((label, "Character") for label in ("PERSON", "PER", "persName")),
        *((label, "Location") for label in ("GPE", "LOC", "FAC", "placeName", "GPE_LOC")),
        *((label, "Organization") for label in ("ORG", "NORP", "orgName", "ORGANIZATION")),
        *((label, "Entity") for label in ("WORK_OF_ART", "EVENT", "PRODUCT", "LAW", "LANGUAGE", "MISC", "SHIP")),
        *((label, None) for label in ("DATE", "TIME", "CARDINAL", "ORDINAL", "MONEY", "PERCENT", "QUANTITY", "date")),
    ],
)
def test_labels_of_many_schemes(label, kind):
    assert kind_of(label) == kind


def test_a_ruler_is_as_good_and_its_pipeline_runs_whole(ruled):
    folder = ruled(("PERSON", "Captain Ahab"), ("EVENT", [{"LEMMA": "regatta"}]), ("DATE", "Monday"))
    text = "On Monday Captain Ahab's crew won the Regatta."
    assert said(text, open_spacy(folder).find([text])[0]) == [("Ahab", "Character"), ("Regatta", "Entity")]


def test_placeholders_and_marker_lines_are_no_mentions(ruled):
    words = [{"TEXT": {"REGEX": "^(Character_A|Character_B|theme|plot|outcome|Location_1)$"}}]
    both = [{"TEXT": "Character_B"}, {"TEXT": "and"}, {"TEXT": "Mary"}]
    across = [{"TEXT": "Rome"}, {"IS_SPACE": True}, {"TEXT": "["}]
    folder = ruled(("PERSON", words), ("PERSON", both), ("GPE", across))
    text = join("Character_A left Location_1. Character_B and Mary saw Rome", Views("The theme", "A plot", "None"))
    assert said(text, open_spacy(folder).find([text])[0]) == [
        *(("Mary", "Character"), ("Rome", "Location")),
        *(("theme", "Character"), ("plot", "Character")),  # the words in the views, not the lines above them
    ]


def test_clusters_stand_on_the_pipelines_tokens(ruled):
    class Fixed:
        def clusters(self, text, tokens):
            words = [text[start:end] for start, end in tokens]
            assert words == ["Anna", "slept", ".", "She", "woke", "."]
            return [[tokens[0], tokens[3]]]

    pipeline = spacy.load(ruled(("PERSON", "Anna")))
    assert SpacyNames(pipeline, Fixed()).find(["Anna slept.\n\nShe woke."]) == [
        [Mention(0, 4, "Character", 0), Mention(13, 16, None, 0)]
    ]


def test_pipelines_that_are_no_use_are_refused_in_one_line(tmp_path):
    with pytest.raises(ModelError, match=r"en_core_nowhere is not installed.*python -m spacy download en_core_nowhere"):
        open_spacy("en_core_nowhere")
    pipeline = spacy.blank("en")
    pipeline.to_disk(tmp_path / "bare")
    pipeline.add_pipe("sentencizer")
    pipeline.to_disk(tmp_path / "cut")
    for name, pipes in (("bare", "no pipes"), ("cut", "sentencizer")):
        with pytest.raises(ModelError, match=f"finds no names: it has {pipes}; one with ner is needed"):
            open_spacy(str(tmp_path / name))


@pytest.mark.parametrize("part", ["config.cfg", "meta.json", "tokenizer", "ner/model", "vocab/strings.json"])
@pytest.mark.parametrize("content", [None, b"", b"{broken"])
def test_a_broken_folder_is_refused_in_one_line(tmp_path, part, content):
    pipeline = spacy.blank("en")
    pipeline.add_pipe("ner").add_label("PERSON")
    pipeline.initialize()
    pipeline.to_disk(tmp_path)
    (tmp_path / part).unlink()
    if content is not None:
        (tmp_path / part).write_bytes(content)
    with pytest.raises(ModelError, match="can't be loaded") as caught:
        open_spacy(str(tmp_path))
    assert "\n" not in str(caught.value)
    assert str(tmp_path) in str(caught.value)


def test_a_text_beyond_spacys_limit_is_refused_by_name(trained):
    finder = open_spacy(trained)
    finder._pipeline.max_length = 20
    with pytest.raises(DataError, match=r"'Anna went a long way h'.*has 22 characters, spaCy reads 20"):
        finder.find(["Short.", "Anna went a long way h"])


def test_without_spacy_the_command_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "spacy", None)
    with pytest.raises(MissingExtraError, match=r"spacy is not installed: pip install 'narrlit\[text\]'$"):
        open_spacy("en_core_web_sm")


def test_no_coreference_model_is_opened_unasked(monkeypatch, ruled):
    opened = []
    monkeypatch.setattr("narrlit.text.pseudonyms.spacy_backend.open_coreference", opened.append)
    folder = ruled(("PERSON", "Anna"))
    open_spacy(folder)
    assert opened == []
    open_spacy(folder, "some/model")
    assert opened == ["some/model"]
