"""A server of embeddings on loopback, and the ways in which such servers go wrong."""

import hashlib
import json
import threading
from collections.abc import Iterable
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np


def hashed_vector(text, dimension=6):
    """Numbers that depend on the text alone, and differ from text to text."""
    seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
    return np.random.default_rng(seed).standard_normal(dimension).tolist()


@dataclass(frozen=True)
class Request:
    path: str
    headers: dict
    body: dict


@dataclass(frozen=True)
class Refusal:
    """An answer without vectors; the body is JSON, or text as it stands."""

    status: int
    body: object = ""
    headers: tuple = ()


class EmbeddingServer:
    """What the handler's threads share, and what a test sets.

    Attributes:
        vector_of: the vector of a text, a list of numbers; one call at a time.
        models: names that GET /v1/models lists.
        refusals: answers given before any vectors; None in between means an answer with vectors.
        alter: alter(entries, number) changes the entries of the answer to the request of this number.
        on_request: on_request(server, number) is called while the request of this number waits for its answer.
        requests: those for vectors, in the order of arrival.
        most_at_once: how many of them waited at the same time.
    """

    def __init__(self, vector_of=hashed_vector, models=("served",), refusals: Iterable = ()):
        self.vector_of = vector_of
        self.models = models
        self.refusals = iter(refusals)
        self.alter = lambda entries, number: entries
        self.on_request = lambda server, number: None
        self.requests: list[Request] = []
        self.at_once = self.most_at_once = 0
        self.url = ""
        self.lock = threading.Lock()

    def answer(self, request):
        """(status, headers, body) for a request for vectors."""
        with self.lock:
            number = len(self.requests)
            self.requests.append(request)
            refusal = next(self.refusals, None)
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            self.on_request(self, number)
            if refusal is not None:
                return refusal.status, dict(refusal.headers), refusal.body
            with self.lock:
                vectors = [self.vector_of(text) for text in request.body["input"]]
        finally:
            with self.lock:
                self.at_once -= 1
        entries = [{"object": "embedding", "index": i, "embedding": list(v)} for i, v in enumerate(vectors)]
        return 200, {}, {"object": "list", "model": request.body["model"], "data": self.alter(entries, number)}


@contextmanager
def embedding_server(**settings):
    """A running EmbeddingServer."""
    state = EmbeddingServer(**settings)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if self.path != "/v1/embeddings":
                return self.send(404, {}, {"detail": "Not Found"})
            return self.send(*state.answer(Request(self.path, {k.lower(): v for k, v in self.headers.items()}, body)))

        def do_GET(self):
            if self.path != "/v1/models":
                return self.send(404, {}, {"detail": "Not Found"})
            return self.send(200, {}, {"object": "list", "data": [{"id": name} for name in state.models]})

        def send(self, status, headers, body):
            content = (body if isinstance(body, str) else json.dumps(body)).encode()
            self.send_response(status)
            # The answers' own type even where the body is broken, as proxies have it.
            for name, value in {"Content-Type": "application/json", "Content-Length": len(content), **headers}.items():
                self.send_header(name, str(value))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *arguments):
            pass

    class Server(ThreadingHTTPServer):
        request_queue_size = 128

        def handle_error(self, request, client_address):
            pass  # a client that was interrupted

    with Server(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        state.url = f"http://127.0.0.1:{server.server_port}/v1"
        try:
            yield state
        finally:
            server.shutdown()


def drop_one(entries, number):
    return entries[:-1]


def repeat_an_index(entries, number):
    return [*entries[:-1], {**entries[-1], "index": 0}]


def without_index(entries, number):
    return [{"embedding": entry["embedding"]} for entry in entries]


def out_of_order(entries, number):
    """Each entry keeps its index: sound, and to be put in order."""
    return entries[::-1]


def wrong_order(entries, number):
    """The vectors are shifted by one, the indices look right: nothing in the answer shows it."""
    return [{**entry, "embedding": entries[i - 1]["embedding"]} for i, entry in enumerate(entries)]


def with_number(number):
    """An alteration: the last vector's second number is `number`, which may be none."""

    def alter(entries, _):
        last = entries[-1]["embedding"]
        return [*entries[:-1], {**entries[-1], "embedding": [last[0], number, *last[2:]]}]

    return alter


def one_shorter(entries, number):
    """One vector of an answer has a number less."""
    return [*entries[:-1], {**entries[-1], "embedding": entries[-1]["embedding"][:-1]}]


def shorter_later(entries, number):
    """All vectors of the second answer and later ones have a number less."""
    return entries if number == 0 else [{**entry, "embedding": entry["embedding"][:-1]} for entry in entries]
