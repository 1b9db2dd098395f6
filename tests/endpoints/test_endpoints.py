"""URLs, keys and refusals, as every server's client reads them."""

import pytest

from narrlit.endpoints.address import check_variable, checked_key, checked_url
from narrlit.endpoints.refusals import SHOWN, message_of, shown
from narrlit.errors import OptionError

KEY = "sk-Tr0ub4dor-and-3"


def test_a_url_loses_its_last_slash_and_nothing_else():
    assert checked_url("https://host:8000/v1/", "--key") == "https://host:8000/v1"
    assert checked_url("http://[::1]/v1", "--key") == "http://[::1]/v1"


@pytest.mark.parametrize("url", ["", "localhost:8000", "ftp://host/v1", "http://", "http://[::1/v1"])
def test_what_is_no_url_is_refused(url):
    with pytest.raises(OptionError, match="http://localhost:8000/v1"):
        checked_url(url, "--key")


@pytest.mark.parametrize("url", [f"http://{KEY}@host/v1", f"http://host/v1?key={KEY}", f"http://host/v1#{KEY}"])
def test_a_url_with_a_key_is_refused_without_it_and_the_keys_place_is_told(url):
    with pytest.raises(OptionError, match="--key") as caught:
        checked_url(url, "--key")
    assert KEY not in str(caught.value)


def test_a_keys_characters():
    assert checked_key(f" {KEY}\n", "here") == KEY
    assert checked_key(" \n", "here") is None
    for bad in ("two words", "clé", "a\nb"):
        with pytest.raises(OptionError, match=r"^here") as caught:
            checked_key(bad, "here")
        assert bad not in str(caught.value)
    with pytest.raises(OptionError, match="--name") as caught:
        check_variable(KEY, "--name")
    assert KEY not in str(caught.value)


def test_a_servers_words_in_one_short_line_without_the_key():
    assert shown(f"Incorrect key:\n {KEY}!", KEY) == "Incorrect key: [key]!"
    assert shown("as it is", None) == "as it is"
    assert len(shown("word " * 1000, None)) <= SHOWN


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"error": {"message": "no"}}, "no"),
        ({"error": "no"}, "no"),
        ({"detail": "no"}, "no"),
        ({"message": "no"}, "no"),
        ("<html>no</html>", "<html>no</html>"),
        (None, "without a word"),
    ],
)
def test_where_servers_put_their_words(body, words):
    assert message_of(body) == words
