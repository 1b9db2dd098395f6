"""Servers of `narrlit serve`: an application in this process, and uvicorn in a thread or in a process of its own."""

import contextlib
import json
import os
import re
import socket
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from urllib.parse import urlsplit

import httpx

from narrlit.serving.app import create_app
from narrlit.serving.serve import address_of, listen, run_app
from narrlit.serving.settings import ServerSettings

HOST = "http://127.0.0.1"


@contextlib.asynccontextmanager
async def client_of(settings, encoder=None, headers=None, **options):
    """A client of an application in this process, which is started and closed."""
    app = create_app(settings, encoder)
    transport = httpx.ASGITransport(app, **options)
    client = httpx.AsyncClient(transport=transport, base_url=HOST, headers=headers, timeout=60)
    client.app = app
    async with app.router.lifespan_context(app), client:
        yield client


@dataclass
class RunningServer:
    url: str
    app: object


@contextlib.contextmanager
def running_server(data, encoder=None, **settings):
    """A real server in a thread."""
    app = create_app(ServerSettings(data, **settings), encoder)
    listening = listen("127.0.0.1", 0)
    ready = threading.Event()
    servers = []
    thread = threading.Thread(target=run_app, args=(app, listening, ready.set), kwargs={"on_server": servers.append})
    thread.start()
    try:
        assert ready.wait(60)
        yield RunningServer(address_of("127.0.0.1", listening.getsockname()[1]), app)
    finally:
        servers[0].should_exit = True
        thread.join(60)
        listening.close()


@contextlib.contextmanager
def serving_process(data, *arguments):
    """`narrlit serve` in a process of its own: the process and its address."""
    command = [sys.executable, "-m", "narrlit", "serve", *map(str, arguments), "--data", str(data)]
    command += ["--port", "0", "--no-browser", "--model", "minilm"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env={**os.environ, "HF_HUB_OFFLINE": "1"})
    try:
        url = None
        while url is None:
            line = process.stderr.readline()
            assert line, f"the server ended with {process.wait()}"
            match = re.search(r"http://\S+", line)
            url = match[0] if match else None
        threading.Thread(target=process.stderr.read, daemon=True).start()  # a full pipe would block the server
        yield process, url
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()


def connected_to(url):
    """A connection of its own to a server."""
    parts = urlsplit(url)
    return socket.create_connection((parts.hostname, parts.port), timeout=60)


def embedding_request(*texts):
    """The bytes of a request for the embeddings of texts."""
    body = json.dumps({"input": texts}).encode()
    head = f"POST /v1/embeddings HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(body)}\r\n"
    return head.encode() + b"Content-Type: application/json\r\n\r\n" + body


def head_of_answer(connection):
    """The status and the lines of the head of an answer."""
    answer = connection.recv(65_536).decode("latin-1")
    head, _, _ = answer.partition("\r\n\r\n")
    status, *lines = head.split("\r\n")
    return int(status.split()[1]), lines


def wait_until(happened, seconds=400, pause=0.05):
    """The first true value of happened()."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = happened()
        if value:
            return value
        time.sleep(pause)
    raise AssertionError(f"nothing happened within {seconds} seconds")
