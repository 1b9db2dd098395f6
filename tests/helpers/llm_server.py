"""Server of a language model on loopback with OpenAI's interface, and the ways in which such servers fail."""

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from embedding_server import hashed_vector
from llm_batches import BatchStore

MODEL = "tiny"


def question(body):
    """What a request asks, whatever its attempt: the user's message."""
    return body["messages"][-1]["content"]


def schema_of(body):
    """The schema that a request's answer is to fit; None where it has none."""
    form = body.get("response_format")
    return form["json_schema"]["schema"] if form else None


def fitting(schema, text="words"):
    """A value that fits a schema, all of its strings alike."""
    if "enum" in schema:
        return schema["enum"][0]
    if schema["type"] == "object":
        return {name: fitting(entry, text) for name, entry in schema["properties"].items()}
    if schema["type"] == "array":
        return [fitting(schema["items"], text)] * schema.get("minItems", 1)
    return text


def sound_reply(body):
    """JSON that fits the request's schema, and differs from question to question and from attempt to attempt."""
    schema = schema_of(body)
    text = f"{question(body)} {body.get('seed', '')}"
    return text if schema is None else json.dumps(fitting(schema, text))


REFUSALS = {
    "429": (429, {}, {"error": {"message": "slow down", "code": "rate_limit_exceeded"}}),
    "429 retry-after": (429, {"Retry-After": "0.2"}, {"error": {"message": "slow down"}}),
    "quota": (429, {}, {"error": {"message": "You exceeded your quota", "code": "insufficient_quota"}}),
    "500": (500, {}, {"error": {"message": "CUDA out of memory"}}),
    "503 page": (503, {}, "<html>\nno upstream</html>"),
    "400": (400, {}, {"error": {"message": "maximum context length is 96 tokens"}}),
    "broken answer": (200, {}, '{"choices": [{"mess'),
    "no choices": (200, {}, {"choices": []}),
}
"""Answers without a reply: status, headers, body."""

REPLIES = {
    "refused": lambda text, schema: "",
    "cut off": lambda text, schema: text[: len(text) // 2],
    "text around": lambda text, schema: f"Here you are {{as asked}}:\n```json\n{text}\n```\nI hope this helps.",
    "placeholder": lambda text, schema: json.dumps(fitting(schema, "...")),
    "wrong schema": lambda text, schema: json.dumps({"answer": 42}),
    "broken JSON": lambda text, schema: text.replace('"', "'").replace("}", ""),
    "empty": lambda text, schema: "",
}
"""Sound replies made into others."""

MODES = [*REFUSALS, *REPLIES, "time-out", "dropped"]


class LLMServer:
    """What the handler's threads share, and what a test sets.

    Attributes:
        reply_of: the reply to a request's body; one call at a time.
        mode: how every request goes wrong, one of MODES; None: it doesn't. mode(body) may decide by the request.
        modes: how the first requests go wrong, before `mode` applies; None in between: one that does not.
        refuses: fields of a request that it refuses with 400, as `response_format`.
        key: what clients must send; None: whatever they like.
        seconds: how long a reply takes.
        on_request: on_request(number) is called while the request of this number, from 0 on, waits for its answer.
        bodies: of the requests for completions, in the order of arrival; `headers` are theirs.
        answered: how often each question was answered with a whole reply that reached the client.
        most_at_once: how many requests waited at the same time.
        batches: files and batches.
    """

    def __init__(self, reply_of=sound_reply, mode=None, modes: Iterable = (), refuses=(), key=None, seconds=0.0):
        self.reply_of: Callable = reply_of
        self.mode = mode
        self.modes = iter(modes)
        self.refuses = refuses
        self.key = key
        self.seconds = seconds
        self.on_request: Callable = lambda number: None
        self.bodies, self.headers, self.times = [], [], []
        self.answered = Counter()
        self.at_once = self.most_at_once = 0
        self.url, self.server = "", None
        self.lock = threading.Lock()
        self.closing = threading.Event()
        self.batches = BatchStore(self)

    @property
    def asked(self):
        """How often each question was asked: (content, seed) -> times."""
        return Counter((question(body), body.get("seed")) for body in self.bodies)

    def complete(self, body, headers):
        """(status, headers, body) for a request for a completion; None: the connection is cut."""
        with self.lock:
            number = len(self.bodies)
            self.bodies.append(body)
            self.headers.append(headers)
            self.times.append(time.monotonic())
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
            mode = next(self.modes, self.mode)
            mode = mode(body) if callable(mode) else mode
        try:
            self.on_request(number)
            self.closing.wait(self.seconds)
            return self.answer(body, mode)
        finally:
            with self.lock:
                self.at_once -= 1

    def answer(self, body, mode):
        """As `complete`, uncounted."""
        refused = [name for name in self.refuses if name in body]
        if refused:
            instead = " Use 'max_completion_tokens' instead." if refused[0] == "max_tokens" else ""
            return 400, {}, {"error": {"message": f"Unsupported parameter: '{refused[0]}'.{instead}"}}
        if body["model"] != MODEL:
            return 404, {}, {"error": {"message": f"The model `{body['model']}` does not exist."}}
        if mode == "time-out":
            self.closing.wait(30)
        if mode in ("time-out", "dropped"):
            return None
        if mode in REFUSALS:
            return REFUSALS[mode]
        with self.lock:
            text = self.reply_of(body)
        alter = REPLIES.get(mode, lambda text, schema: text)
        answer = completion(alter(text, schema_of(body)), "length" if mode == "cut off" else "stop", body)
        if mode == "refused":
            answer["choices"][0]["message"] |= {"content": None, "refusal": "I can't write that."}
        return 200, {}, answer

    def shutdown(self):
        """Answer nothing more, and be no longer there."""
        self.closing.set()
        self.server.shutdown()
        self.server.server_close()


def completion(text, finish, body):
    words = sum(len(message["content"].split()) for message in body["messages"])
    return {
        "id": "chatcmpl-1",
        "created": 0,
        "object": "chat.completion",
        "model": body["model"],
        "choices": [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": finish}],
        "usage": {"prompt_tokens": words, "completion_tokens": len(text.split())},
    }


@contextmanager
def llm_server(**settings):
    """A running LLMServer."""
    state = LLMServer(**settings)

    class Server(ThreadingHTTPServer):
        request_queue_size = 128
        daemon_threads = True
        llm = state

        def handle_error(self, request, client_address):
            pass  # a client that was interrupted or killed

    with Server(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        state.url = f"http://127.0.0.1:{server.server_port}/v1"
        state.server = server
        try:
            yield state
        finally:
            state.shutdown()


def encoded(body):
    return body if isinstance(body, bytes) else (body if isinstance(body, str) else json.dumps(body)).encode()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        content = self.rfile.read(int(self.headers["Content-Length"]))
        gone = self.server.llm.closing.is_set()
        answer = None if gone else self.refusal() or self.posted(content)
        if answer is None:
            self.close_connection = True
            self.connection.close()
            return
        self.send(*answer)
        if self.path == "/v1/chat/completions" and answer[0] == 200:
            with self.server.llm.lock:
                self.server.llm.answered[question(json.loads(content))] += 1

    def refusal(self):
        key = self.server.llm.key
        given = self.headers["Authorization"]
        if key is None or given == f"Bearer {key}":
            return None
        return 401, {}, {"error": {"message": f"Incorrect API key provided: {given}"}}

    def posted(self, content):
        """The answer to a body; None: the connection is cut."""
        llm = self.server.llm
        if self.path == "/v1/files":
            return llm.batches.upload(self.headers["Content-Type"], content)
        body = json.loads(content)
        if self.path == "/v1/batches":
            return llm.batches.make(body)
        if self.path == "/v1/embeddings":
            vectors = [{"index": i, "embedding": hashed_vector(text)} for i, text in enumerate(body["input"])]
            return 200, {}, {"object": "list", "model": body["model"], "data": vectors}
        if self.path == "/v1/chat/completions":
            return llm.complete(body, {name.lower(): value for name, value in self.headers.items()})
        return 404, {}, {"detail": "Not Found"}

    def do_GET(self):
        llm = self.server.llm
        if self.path == "/v1/models":
            return self.send(200, {}, {"object": "list", "data": [{"id": MODEL}]})
        return self.send(*llm.batches.get(self.path))

    def send(self, status, headers, body):
        content = encoded(body)
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", "Content-Length": len(content), **headers}.items():
            self.send_header(name, str(value))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *arguments):
        pass
