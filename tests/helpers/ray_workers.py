"""Workers of Ray that this process has started."""

import os
import signal
import threading
import time
from collections.abc import Callable

import psutil


class KilledWorker(threading.Thread):
    """Kill a worker of Ray as soon as a condition holds.

    Attributes:
        killed: True when a worker is killed.
    """

    def __init__(self, condition: Callable[[], bool]) -> None:
        super().__init__(daemon=True)
        self.killed = False
        self._condition = condition

    def run(self) -> None:
        """Wait for the condition, then for a worker, and kill it."""
        while not self._condition():
            time.sleep(0.005)
        while not self.killed:
            for process in psutil.Process().children(recursive=True):
                if _is_worker(process):
                    os.kill(process.pid, signal.SIGKILL)
                    self.killed = True
                    return


def _is_worker(process: psutil.Process) -> bool:
    """Return True for a process of Ray that embeds parts."""
    try:
        name = " ".join(process.cmdline())
    except psutil.Error:
        return False
    return name.startswith("ray::") and "_Worker" in name
