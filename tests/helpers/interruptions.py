"""Processes and experiments that end in the middle."""

import time


class Killed(BaseException):
    """Ends an experiment as a power cut would."""


def wait_for(happened, process):
    """Wait until happened() is true; the process must not end before."""
    while not happened():
        assert process.exitcode is None
        time.sleep(0.002)
