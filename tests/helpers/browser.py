"""Headless Chromium, driven through its DevTools protocol by a pair of pipes."""

import contextlib
import itertools
import json
import os
import subprocess
import time


class Browser:
    """One page: browser("Page.reload") sends a command; `events` holds what the browser reported."""

    def __init__(self, program, profile):
        reads, theirs_out = os.pipe()
        theirs_in, writes = os.pipe()
        self.reads = reads
        self.writes = writes
        self.numbers = itertools.count(1)
        self.rest = b""
        self.events = []
        self.session = {}
        # The browser reads commands from descriptor 3 and writes to 4.
        command = f'exec "$0" "$@" 3<&{theirs_in} 4>&{theirs_out}'
        options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe"]
        self.process = subprocess.Popen(
            ["bash", "-c", command, program, *options, f"--user-data-dir={profile}"],
            pass_fds=(theirs_in, theirs_out),
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        target = self("Target.createTarget", url="about:blank")["targetId"]
        self.session = {"sessionId": self("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]}
        for domain in ("Runtime", "Log", "Network", "Page"):
            self(f"{domain}.enable")

    def __call__(self, method, **params):
        number = next(self.numbers)
        os.write(
            self.writes, json.dumps({"id": number, "method": method, "params": params, **self.session}).encode() + b"\0"
        )
        while True:
            while b"\0" not in self.rest:
                self.rest += os.read(self.reads, 1 << 20) or b'{"id": -1}\0'
            message, _, self.rest = self.rest.partition(b"\0")
            reply = json.loads(message)
            assert reply.get("id") != -1, "the browser ended"
            if reply.get("id") == number:
                assert "error" not in reply, reply
                return reply["result"]
            self.events.append(reply)

    def value(self, expression):
        """The value of a JavaScript expression; a promise is awaited."""
        result = self("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def open(self, path, width, height=900):
        self("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)
        self("Page.navigate", url=path.as_uri())
        self.wait("document.readyState == 'complete' && window.Bokeh && Bokeh.documents.every((d) => d.is_idle)")

    def wait(self, expression):
        """Wait until an expression is true; return its value."""
        for _ in range(100):
            with contextlib.suppress(AssertionError):  # the page is changing
                if value := self.value(expression):
                    return value
            time.sleep(0.05)
        raise AssertionError(f"never true: {expression}")

    def problems(self):
        """Exceptions, log entries, dialogs, and errors and warnings of the console."""
        found = []
        for event in self.events:
            method = event["method"]
            params = event.get("params", {})
            in_console = method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning")
            if in_console or method in ("Runtime.exceptionThrown", "Log.entryAdded") or "DialogOpening" in method:
                found.append(event)
        return found

    def requested(self):
        """URLs of all requests, in order."""
        requests = [event for event in self.events if event["method"] == "Network.requestWillBeSent"]
        return [event["params"]["request"]["url"] for event in requests]

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self.reads)
        os.close(self.writes)
