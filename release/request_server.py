"""Start `narrlit serve`, request its health and an embedding, and stop it; options are those of `narrlit serve`."""

import json
import re
import signal
import subprocess
import sys
from typing import Any
from urllib.request import Request, urlopen


def main(options: list[str]) -> int:
    """Return the exit code of the server after Ctrl-C, or 1 if it did not start."""
    command = ["narrlit", "serve", "--port", "0", "--no-browser", *options]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        address = announced_address(process)
        if address is None:
            return 1
        try:
            print(fetch(f"{address}/health"))
            answer = fetch(f"{address}/v1/embeddings", {"input": ["A knight seeks a grail."]})
            print(len(answer["data"][0]["embedding"]), "dimensions")
        finally:
            process.send_signal(signal.SIGINT)
    return process.returncode


def announced_address(process: subprocess.Popen[str]) -> str | None:
    """Read the messages of a server up to the one with its address, and print them; None if the server ends first."""
    assert process.stderr is not None
    for line in process.stderr:
        print(line, end="")
        address = re.search(r"http://\S+", line)
        if address:
            return address[0]
    return None


def fetch(address: str, body: object = None) -> Any:
    """Send a request, with a body as JSON, and decode the answer."""
    content = None if body is None else json.dumps(body).encode()
    request = Request(address, content, {"Content-Type": "application/json"})
    with urlopen(request, timeout=60) as answer:
        return json.load(answer)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
