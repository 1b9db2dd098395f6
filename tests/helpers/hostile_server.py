"""A server on loopback whose replies never end, are too large or nested too deeply."""

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

MEBIBYTE = b" " * 2**20
CHAT = {"choices": [{"index": 0, "message": {"role": "assistant", "content": "A"}, "finish_reason": "stop"}]}


def dripping(closing):
    """A byte at a time, each sooner than any time-out, without an end."""
    while not closing.wait(0.02):
        yield b" "


def huge(closing):
    """A reply of 1 GiB."""
    for _ in range(1024):
        if closing.is_set():
            return
        yield MEBIBYTE


def deep(levels):
    """A sound reply with a field of that many lists in one another."""

    def pieces(closing):
        reply = json.dumps({**CHAT, "data": [], "extra": "LISTS"})
        yield reply.replace('"LISTS"', "[" * levels + "]" * levels).encode()

    return pieces


REPLIES = {"drip": dripping, "1 GiB": huge, "deep": deep(100_000), "a little too deep": deep(300)}


@contextmanager
def hostile_server(pieces):
    """A running server that answers every request with pieces(closing); yields its URL and the list of requests."""
    closing, requests = threading.Event(), []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            self.rfile.read(int(self.headers["Content-Length"]))
            requests.append(self.path)
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            try:
                for piece in pieces(closing):
                    self.wfile.write(piece)
                    self.wfile.flush()
            except OSError:
                pass  # the client has had enough

        def log_message(self, *arguments):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/v1", requests
        finally:
            closing.set()
            server.shutdown()
