"""Processes that work for a server: how they start, and that they end with it."""

import asyncio
import os
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import suppress
from importlib import import_module
from typing import TextIO, cast

LONGEST_LINE = 16 * 2**20
"""Bytes of a line that a process reports."""
NICENESS = 10
END_SECONDS = 5
"""Time in which a process has to end when it is asked to."""


class WorkerProcess:
    """Process that gets a job as one line of JSON and reports in lines of JSON.

    It ends when its standard input is closed, which happens even if the server is killed.
    """

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        """Take a process that `start` has started."""
        self._process = process

    @classmethod
    async def start(cls, module: str) -> "WorkerProcess":
        """Start a module of narrlit, which waits for its job."""
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-P",  # no modules of the current folder
            "-m",
            module,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            limit=LONGEST_LINE,
            env={"OMP_WAIT_POLICY": "PASSIVE", **os.environ},  # threads that wait leave the processors to the server
        )
        return cls(process)

    async def send(self, job: str) -> None:
        """Send the process its job."""
        if self._process.stdin is not None:
            with suppress(ConnectionError):  # a process that has ended reports nothing
                self._process.stdin.write(job.encode() + b"\n")
                await self._process.stdin.drain()

    async def reports(self, seconds: float | None = None) -> AsyncIterator[str]:
        """Yield the lines that the process reports, until it ends.

        Args:
            seconds: time between two lines.

        Raises:
            TimeoutError: if a line does not arrive in time.
        """
        if self._process.stdout is None:
            return
        while True:
            async with asyncio.timeout(seconds):
                line = await self._process.stdout.readline()
            if not line:
                await self._process.wait()
                return
            yield line.decode()

    async def stop(self) -> None:
        """End the process."""
        with suppress(ProcessLookupError):
            self._process.terminate()
        try:
            async with asyncio.timeout(END_SECONDS):
                await self._process.wait()
        except TimeoutError:
            with suppress(ProcessLookupError):
                self._process.kill()
            await self._process.wait()


def receive_job(*modules: str) -> str:
    """Read the job of this process, which gives way to the server and ends with it; first import slow modules."""
    sys.stdout = sys.stderr  # what libraries print is no report
    if hasattr(os, "nice"):
        os.nice(NICENESS)
    with suppress(ImportError):  # reported when the job needs it
        for module in modules:
            import_module(module)
    job = sys.stdin.buffer.readline().decode()
    if not job:
        sys.exit("the server has ended")
    threading.Thread(target=_end_with_server, daemon=True).start()
    return job


def send_line(line: str) -> None:
    """Report a line to the server."""
    reports = cast("TextIO", sys.__stdout__).buffer
    reports.write(line.encode() + b"\n")
    reports.flush()


def _end_with_server() -> None:
    sys.stdin.buffer.read()
    os._exit(1)
