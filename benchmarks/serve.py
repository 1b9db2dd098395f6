"""Load on a server: `/v1/embeddings` beside sentence-transformers behind plain FastAPI, and search in a collection.

    python benchmarks/serve.py                       # 1, 8 and 64 clients, 10,000 stories
    python benchmarks/serve.py --seconds 2 --stories 200 --clients 1 8

Both servers are processes of their own with the same model, threads and texts, and run one after the other. Each client
sends one text at a time and waits for the answer.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random

os.environ["HF_HUB_OFFLINE"] = "1"

import httpx
import numpy as np

import narrlit
from narrlit.data.storyworld import StoryWorld
from narrlit.models.packaged import packaged_minilm

PORTS = {"narrlit": 8391, "plain": 8392}
TEXTS = 512
"""Different texts that clients send."""
WARM_UP = 8
START_SECONDS = 300
PLAIN = """
import sys
import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel
from sentence_transformers import SentenceTransformer

model = SentenceTransformer(sys.argv[1], device="cpu")
app = FastAPI()


class Body(BaseModel):
    input: str


@app.post("/v1/embeddings")
def embeddings(body: Body):
    vector = model.encode([body.input], show_progress_bar=False)[0]
    return {"data": [{"index": 0, "embedding": vector.tolist()}]}


@app.get("/health")
def health():
    return {"status": "ok"}


uvicorn.run(app, port=int(sys.argv[2]), log_level="warning")
"""


@dataclass(frozen=True)
class Load:
    """Answers of a server under load.

    Attributes:
        system: the server.
        clients: number of clients at the same time.
        requests_per_second: answered requests.
        p50: median time to answer, in milliseconds.
        p99: time in which 99 of 100 requests are answered, in milliseconds.
        refused: requests that were not answered with 200.
    """

    system: str
    clients: int
    requests_per_second: float
    p50: float
    p99: float
    refused: int


def texts(count: int) -> list[str]:
    """Return different synthetic stories."""
    stories: dict[str, None] = {}
    seed = 0
    while len(stories) < count:
        for triple in StoryWorld(seed).triples(count):
            stories[triple.anchor.text] = None
        seed += 1
    return list(stories)[:count]


@contextmanager
def serving(command: Sequence[str], url: str) -> Iterator[None]:
    """Run a server until the block ends."""
    process = subprocess.Popen(command)
    try:
        end = time.monotonic() + START_SECONDS
        while True:
            try:
                httpx.get(f"{url}/health", timeout=5)
                break
            except httpx.HTTPError:
                if process.poll() is not None or time.monotonic() > end:
                    raise SystemExit(f"the server did not start: {' '.join(command[:3])}") from None
                time.sleep(0.2)
        yield
    finally:
        process.terminate()
        process.wait()


async def load(
    system: str, url: str, path: str, bodies: Sequence[dict[str, object]], clients: int, seconds: float
) -> Load:
    """Send requests from several clients for a time, and measure the answers."""
    times: list[float] = []
    refused = 0
    limits = httpx.Limits(max_connections=clients, max_keepalive_connections=clients)
    async with httpx.AsyncClient(base_url=url, limits=limits, timeout=120) as http:
        for body in bodies[:WARM_UP]:
            await http.post(path, json=body)
        end = time.perf_counter() + seconds

        async def client(number: int) -> None:
            nonlocal refused
            order = Random(number)
            while time.perf_counter() < end:
                began = time.perf_counter()
                answer = await http.post(path, json=order.choice(bodies))
                times.append(time.perf_counter() - began)
                refused += answer.status_code != httpx.codes.OK

        began = time.perf_counter()
        await asyncio.gather(*(client(number) for number in range(clients)))
        elapsed = time.perf_counter() - began
    p50, p99 = 1000 * np.percentile(times, [50, 99])
    return Load(system, clients, (len(times) - refused) / elapsed, float(p50), float(p99), refused)


def measure_embeddings(clients: Sequence[int], seconds: float, data: Path) -> list[Load]:
    """Measure both servers, one after the other."""
    narrlit_url, plain_url = (f"http://127.0.0.1:{port}" for port in PORTS.values())
    own = [sys.executable, "-m", "narrlit", "serve", "--no-browser", "--model", "minilm", "--data", str(data)]
    commands = {
        "narrlit": ([*own, "--port", str(PORTS["narrlit"])], narrlit_url),
        "plain": ([sys.executable, "-c", PLAIN, str(packaged_minilm()), str(PORTS["plain"])], plain_url),
    }
    bodies: list[dict[str, object]] = [{"input": text} for text in texts(TEXTS)]
    results = []
    for system, (command, url) in commands.items():
        with serving(command, url):
            for count in clients:
                results.append(asyncio.run(load(system, url, "/v1/embeddings", bodies, count, seconds)))
    return results


def measure_search(stories: int, seconds: float, data: Path) -> Load:
    """Measure searches of one client in a collection."""
    written = texts(stories + WARM_UP * 8)
    narrlit.Index.create(data / "collections" / "stories", written[:stories], "minilm", progress=True)
    command = [sys.executable, "-m", "narrlit", "serve", "--no-browser", "--model", "minilm", "--data", str(data)]
    url = f"http://127.0.0.1:{PORTS['narrlit']}"
    queries: list[dict[str, object]] = [{"query": text.partition(".")[0]} for text in written[stories:]]
    with serving([*command, "--port", str(PORTS["narrlit"])], url):
        return asyncio.run(load("search", url, "/collections/stories/search", queries, 1, seconds))


def table(results: Sequence[Load]) -> str:
    """Write results with the ratio of narrlit to the plain server."""
    plain = {each.clients: each for each in results if each.system == "plain"}
    lines = ["system   clients  requests/s  p50 ms  p99 ms  refused  ratio"]
    for each in results:
        other = plain.get(each.clients)
        is_own = each.system == "narrlit" and other is not None
        ratio = f"{each.requests_per_second / other.requests_per_second:5.2f}" if is_own and other else ""
        figures = f"{each.requests_per_second:10.1f}  {each.p50:6.0f}  {each.p99:6.0f}  {each.refused:7d}"
        lines.append(f"{each.system:<7}  {each.clients:7d}  {figures}  {ratio}".rstrip())
    return "\n".join(lines)


def main() -> None:
    """Measure and print."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--clients", type=int, nargs="*", default=[1, 8, 64])
    options.add_argument("--seconds", type=float, default=20, help="time of each measurement")
    options.add_argument("--stories", type=int, default=10_000, help="stories to search; 0: no search")
    options.add_argument("--json", action="store_true", help="print one line of JSON")
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        results = measure_embeddings(chosen.clients, chosen.seconds, Path(folder, "empty"))
        if chosen.stories:
            results.append(measure_search(chosen.stories, chosen.seconds, Path(folder, "data")))
    print(json.dumps([asdict(each) for each in results]) if chosen.json else table(results))


if __name__ == "__main__":
    main()
