"""Which options of a back-translation go together."""

import pytest

from narrlit.errors import OptionError
from narrlit.models.pivots import FLORES, Pivots, Route


def test_marian_models_are_named_after_each_pivot():
    pivots = Pivots("fr, ru", there="m/{pivot}/there", back="m/{pivot}-en")
    assert pivots.names == ["fr", "ru"]
    assert pivots.routes("ru") == (Route("m/ru/there"), Route("m/ru-en"))
    assert Pivots("fr", there="a", back="b").routes("fr") == (Route("a"), Route("b"))


def test_nllb_goes_from_english_and_back_into_it():
    pivots = Pivots("fr,ru,hi,awa_Deva", nllb="n")
    assert [pivots.routes(name)[0].target for name in pivots.names] == ["fra_Latn", "rus_Cyrl", "hin_Deva", "awa_Deva"]
    for name in pivots.names:
        there, back = pivots.routes(name)
        assert there.source == back.target == "eng_Latn"
        assert there.target == back.source
        assert there.model == back.model == "n"


def test_every_code_is_one_that_nllb_has():
    tokenization = pytest.importorskip("transformers.models.nllb.tokenization_nllb")
    assert set(FLORES.values()) <= set(tokenization.FAIRSEQ_LANGUAGE_CODES)
    assert len(set(FLORES.values())) == len(FLORES)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"pivots": ""}, "names no language"),
        ({"pivots": "fr,"}, "--pivots fr,: '' names no language"),
        ({"pivots": "fr,../x"}, "'../x' names no language"),
        ({"pivots": "fr,en"}, "English already; leave en out"),
        ({"pivots": "eng_Latn", "nllb": "n"}, "English already"),
        ({"pivots": "fr,ru,fr"}, "stands there twice"),
        ({"pivots": "fr,xx", "nllb": "n"}, "--pivots xx: its code in NLLB is not known"),
        ({"nllb": "n", "there": "a"}, "--there has no use beside --nllb"),
        ({"nllb": "n", "back": "a"}, "--back has no use beside --nllb"),
        ({"there": "a"}, "--there a: with several pivots its name needs {pivot} in it"),
        ({"back": "a"}, "--back a: with several"),
        ({"beams": 0}, "--beams 0: at least 1"),
        ({"batch_tokens": 0}, "--batch-tokens 0: at least 1"),
    ],
)
def test_options_without_use_are_refused(options, message):
    with pytest.raises(OptionError) as refused:
        Pivots(**options)
    assert message in str(refused.value)
