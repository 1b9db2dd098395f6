"""Load on a server: `/v1/embeddings` beside sentence-transformers behind plain FastAPI, and search in a collection.

    python benchmarks/serve.py                       # 1, 8 and 64 clients, 10,000 stories
    python benchmarks/serve.py --seconds 2 --stories 200 --clients 1 8
    python benchmarks/serve.py --infinity infinity/bin/infinity_emb    # and infinity-emb, in its own environment
    python benchmarks/serve.py --seconds 3600 --clients 8 --texts sentences --stories 0    # memory after an hour

The servers are processes of their own with the same model, threads and texts, and run one after the other. Each client
sends one text at a time, a story or the first sentence of one, and waits for the answer.
"""

import argparse
import asyncio
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random

os.environ["HF_HUB_OFFLINE"] = "1"

import httpx
import numpy as np
import psutil  # type: ignore[import-untyped]  # comes with accelerate
import torch

import narrlit
from narrlit.data.storyworld import StoryWorld
from narrlit.models.capabilities import has_bf16
from narrlit.models.packaged import packaged_minilm

PORTS = {"narrlit": 8391, "plain": 8392, "infinity": 8393}
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
        texts: what clients send: stories, or sentences.
        clients: number of clients at the same time.
        requests_per_second: answered requests.
        p50: median time to answer, in milliseconds.
        p99: time in which 99 of 100 requests are answered, in milliseconds.
        refused: requests that were not answered with 200.
        megabytes: memory of the server and its worker processes at the end.
    """

    system: str
    texts: str
    clients: int
    requests_per_second: float
    p50: float
    p99: float
    refused: int
    megabytes: float


@dataclass(frozen=True)
class Times:
    """Times to answer of requests under load.

    Attributes:
        seconds: time of each request.
        refused: number of requests that were not answered with 200.
        elapsed: seconds from the first request to the last answer.
    """

    seconds: Sequence[float]
    refused: int
    elapsed: float

    def load(self, system: str, texts: str, clients: int, megabytes: float) -> Load:
        """Summarize the requests."""
        p50, p99 = 1000 * np.percentile(self.seconds, [50, 99])
        answered = len(self.seconds) - self.refused
        return Load(system, texts, clients, answered / self.elapsed, float(p50), float(p99), self.refused, megabytes)


def stories(count: int) -> list[str]:
    """Return different synthetic stories."""
    found: dict[str, None] = {}
    seed = 0
    while len(found) < count:
        for triple in StoryWorld(seed).triples(count):
            found[triple.anchor.text] = None
        seed += 1
    return list(found)[:count]


def sentences(count: int) -> list[str]:
    """Return the first sentences of different synthetic stories."""
    return [story.partition(".")[0] for story in stories(count)]


TEXTS_OF = {"stories": stories, "sentences": sentences}
"""Functions that return different texts, by what these are."""


@contextmanager
def serving(command: Sequence[str], url: str) -> Iterator[psutil.Process]:
    """Run a server until the block ends."""
    process = psutil.Popen(command)
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
        yield process
    finally:
        process.terminate()
        process.wait()


def megabytes(process: psutil.Process) -> float:
    """Return the memory of a process and its children, without what they share, in MB."""
    family = [process, *process.children(recursive=True)]
    return float(sum(member.memory_full_info().uss for member in family) / 1e6)


async def load(url: str, bodies: Sequence[dict[str, object]], clients: int, seconds: float) -> Times:
    """Send requests from several clients for a time, and measure the answers."""
    times: list[float] = []
    refused = 0
    async with AsyncExitStack() as stack:
        # A pool each: what a pool of httpx does for a request grows with the number of its connections.
        pools = [await stack.enter_async_context(httpx.AsyncClient(timeout=120, verify=False)) for _ in range(clients)]
        for body in bodies[:WARM_UP]:
            await pools[0].post(url, json=body)
        end = time.perf_counter() + seconds

        async def client(number: int) -> None:
            nonlocal refused
            order = Random(number)
            while time.perf_counter() < end:
                began = time.perf_counter()
                answer = await pools[number].post(url, json=order.choice(bodies))
                times.append(time.perf_counter() - began)
                refused += answer.status_code != httpx.codes.OK

        began = time.perf_counter()
        await asyncio.gather(*(client(number) for number in range(clients)))
        elapsed = time.perf_counter() - began
    return Times(times, refused, elapsed)


def own_command(data: Path) -> list[str]:
    """Return the command of narrlit's server."""
    options = ["--no-browser", "--model", "minilm", "--device", "cpu", "--data", str(data)]
    options += ["--port", str(PORTS["narrlit"])]
    return [sys.executable, "-m", "narrlit", "serve", *options]


def embedding_commands(data: Path, infinity: str | None) -> dict[str, list[str]]:
    """Return the command of each server of embeddings."""
    model = str(packaged_minilm())
    commands = {"narrlit": own_command(data)}
    if has_bf16(torch.device("cpu")):
        commands["narrlit, bf16"] = [*own_command(data), "--precision", "bf16"]
    commands["plain"] = [sys.executable, "-c", PLAIN, model, str(PORTS["plain"])]
    if infinity is not None:
        served = ["--model-id", model, "--served-model-name", "minilm", "--device", "cpu", "--dtype", "float32"]
        address = ["--url-prefix", "/v1", "--port", str(PORTS["infinity"]), "--log-level", "error"]
        commands["infinity"] = [infinity, "v2", *served, *address]
    return commands


def measure_embeddings(
    commands: Mapping[str, Sequence[str]], kinds: Sequence[str], clients: Sequence[int], seconds: float
) -> list[Load]:
    """Measure servers, one after the other."""
    results = []
    for system, command in commands.items():
        url = f"http://127.0.0.1:{PORTS[system.partition(',')[0]]}"
        with serving(command, url) as process:
            for kind in kinds:
                bodies: list[dict[str, object]] = [{"input": text, "model": "minilm"} for text in TEXTS_OF[kind](TEXTS)]
                for count in clients:
                    times = asyncio.run(load(f"{url}/v1/embeddings", bodies, count, seconds))
                    results.append(times.load(system, kind, count, megabytes(process)))
    return results


def measure_search(count: int, seconds: float, data: Path) -> Load:
    """Measure searches of one client by sentences, in a collection of a number of stories."""
    written = stories(count + WARM_UP * 8)
    narrlit.Index.create(data / "collections" / "stories", written[:count], "minilm", progress=True)
    queries: list[dict[str, object]] = [{"query": text.partition(".")[0]} for text in written[count:]]
    url = f"http://127.0.0.1:{PORTS['narrlit']}"
    with serving(own_command(data), url) as process:
        times = asyncio.run(load(f"{url}/collections/stories/search", queries, 1, seconds))
        return times.load("search", "searches", 1, megabytes(process))


def table(results: Sequence[Load]) -> str:
    """Write results with the ratio of the requests per second to those of the plain server."""
    plain = {(each.texts, each.clients): each for each in results if each.system == "plain"}
    lines = ["system         texts      clients  requests/s  p50 ms  p99 ms  refused      MB  ratio to plain"]
    for each in results:
        peer = plain.get((each.texts, each.clients))
        ratio = "" if peer is None else f"{each.requests_per_second / peer.requests_per_second:.2f}"
        load = f"{each.system:<13}  {each.texts:<9}  {each.clients:7d}  {each.requests_per_second:10.1f}"
        figures = f"{each.p50:6.0f}  {each.p99:6.0f}  {each.refused:7d}  {each.megabytes:6.0f}"
        lines.append(f"{load}  {figures}  {ratio}".rstrip())
    return "\n".join(lines)


def by_system(results: Sequence[Load]) -> dict[str, dict[str, dict[int, dict[str, object]]]]:
    """Order results as plain data by the system, what clients send, and the number of clients."""
    nested: dict[str, dict[str, dict[int, dict[str, object]]]] = {}
    for each in results:
        of_texts = nested.setdefault(each.system, {}).setdefault(each.texts, {})
        of_texts[each.clients] = asdict(each)
    return nested


def main() -> None:
    """Measure and print."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--clients", type=int, nargs="*", default=[1, 8, 64])
    options.add_argument("--seconds", type=float, default=20, help="time of each measurement")
    options.add_argument("--texts", choices=TEXTS_OF, nargs="*", default=list(TEXTS_OF), help="what clients send")
    options.add_argument("--stories", type=int, default=10_000, help="stories to search; 0: no search")
    options.add_argument(
        "--infinity",
        metavar="PROGRAM",
        default=shutil.which("infinity_emb"),
        help="infinity_emb, to be measured, too; default: the one on the PATH, if there is one",
    )
    options.add_argument("--json", action="store_true", help="print one line of JSON")
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        commands = embedding_commands(Path(folder, "empty"), chosen.infinity)
        results = measure_embeddings(commands, chosen.texts, chosen.clients, chosen.seconds)
        if chosen.stories:
            results.append(measure_search(chosen.stories, chosen.seconds, Path(folder, "data")))
    print(json.dumps(by_system(results)) if chosen.json else table(results))


if __name__ == "__main__":
    main()
