"""The command: addresses, tokens, and a server in a process of its own."""

import signal
import socket

import httpx
import pytest
from servers import serving_process

from narrlit.errors import OptionError
from narrlit.serving.serve import listen, server_settings


def settings_of(tmp_path, **options):
    return server_settings(None, data=tmp_path, model="minilm", **{"host": "127.0.0.1", "token": None, **options})


def test_loopback_needs_no_token_and_any_other_address_gets_one(tmp_path):
    assert settings_of(tmp_path).token is None
    first, second = (settings_of(tmp_path, host="0.0.0.0").token for _ in range(2))
    assert first != second
    assert len(first) >= 32
    assert settings_of(tmp_path, host="0.0.0.0", token="a long secret").token == "a long secret"


def test_a_short_token_is_refused(tmp_path):
    with pytest.raises(OptionError, match="`token`"):
        settings_of(tmp_path, token="short")


def test_a_port_in_use_and_a_foreign_address_are_refused():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(OptionError, match="`port="):
            listen("127.0.0.1", taken.getsockname()[1])
    with pytest.raises(OptionError, match=r"`host=192\.0\.2\.1`"):
        listen("192.0.2.1", 0)
    with pytest.raises(OptionError, match="0 to 65535"):
        listen("127.0.0.1", 99999)


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 0), (signal.SIGTERM, 143)])
def test_the_command_serves_until_a_signal_stops_it(tmp_path, number, code):
    with serving_process(tmp_path / "data") as (process, url):
        assert httpx.get(f"{url}/health").json()["status"] == "ok"
        process.send_signal(number)
        assert process.wait(60) == code
