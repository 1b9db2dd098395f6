"""The command: addresses, tokens, and a server in a process of its own."""

import signal
import socket

import httpx
import pytest
from refusals import refused
from servers import connected_to, embedding_request, head_of_answer, serving_process, wait_until

import narrlit
from narrlit.serving.middleware import allowed_names
from narrlit.serving.serve import listen, server_settings


def settings_of(tmp_path, **options):
    return server_settings(
        None, data=tmp_path, **{"encoder": "minilm", "host": "127.0.0.1", "token": None, "names": (), **options}
    )


def test_loopback_needs_no_token_and_any_other_address_gets_one(tmp_path):
    assert settings_of(tmp_path).token is None
    first, second = (settings_of(tmp_path, host="0.0.0.0").token for _ in range(2))
    assert first != second
    assert len(first) >= 32
    assert settings_of(tmp_path, host="0.0.0.0", token="a long secret").token == "a long secret"


def test_behind_a_proxy_a_token_is_needed_and_its_name_is_answered(tmp_path):
    settings = settings_of(tmp_path, names=["Stories.example.org"])
    assert len(settings.token) >= 32
    assert "stories.example.org" in allowed_names(settings)
    assert "other.example.org" not in allowed_names(settings)


def test_a_source_is_an_index_a_folder_of_indexes_or_stories(tmp_path, tales_index):
    def of(source):
        settings = server_settings(
            source, host="localhost", token=None, names=(), data=tmp_path / "data", encoder="minilm"
        )
        return settings.indexes, settings.source

    assert of(tales_index) == ((tales_index,), None)
    assert of(tales_index.parent) == ((tales_index,), None)
    (tmp_path / "stories").mkdir()
    assert of(tmp_path / "stories") == ((), tmp_path / "stories")
    with refused("no_source"):
        of(tmp_path / "nowhere")


def test_an_encoder_sets_how_the_model_is_loaded(tmp_path):
    encoder = narrlit.load("minilm", max_length=64, precision="fp32", device="cpu")
    settings = settings_of(tmp_path, encoder=encoder)

    assert settings.model == "minilm"
    assert settings.loading == encoder.loading


@pytest.mark.parametrize(
    "setting", [{"missing_views": "positional"}, {"pseudonyms": True}, {"postprocess": "truncate:9"}]
)
def test_an_encoder_that_no_name_describes_is_refused(tmp_path, setting):
    with refused("model_of_server"):
        settings_of(tmp_path, encoder=narrlit.load("minilm", **setting))


def test_a_short_token_is_refused(tmp_path):
    with refused("short_token"):
        settings_of(tmp_path, token="short")


def test_a_port_in_use_and_a_foreign_address_are_refused():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with refused("unusable_port"):
            listen("127.0.0.1", taken.getsockname()[1])
    with refused("unusable_port", host="192.0.2.1", port=0):
        listen("192.0.2.1", 0)
    with refused("port"):
        listen("127.0.0.1", 99999)


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 0), (signal.SIGTERM, 143)])
def test_the_command_serves_until_a_signal_stops_it(tmp_path, number, code):
    with serving_process(tmp_path / "data") as (process, url):
        assert httpx.get(f"{url}/health").json()["status"] == "ok"
        process.send_signal(number)
        assert process.wait(60) == code


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_requests_in_flight_are_answered_before_a_signal_stops_the_server(tmp_path, number):
    request = embedding_request("A knight seeks a grail.")
    with serving_process(tmp_path / "data") as (process, url), connected_to(url) as connection:
        connection.sendall(request[:-1])
        assert httpx.get(f"{url}/health", timeout=60).status_code == 200
        process.send_signal(number)
        wait_until(lambda: refuses_connections(url), seconds=60)
        connection.sendall(request[-1:])

        status, _ = head_of_answer(connection)
        assert status == 200
        process.wait(60)


def refuses_connections(url):
    """True if the server accepts no connection any more."""
    try:
        connected_to(url).close()
    except ConnectionRefusedError:
        return True
    return False
