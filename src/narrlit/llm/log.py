"""The log of all requests and replies, from which a job goes on."""

from datetime import datetime, timezone
from pathlib import Path
from types import TracebackType
from typing import Any

from narrlit.llm.journal import Journal
from narrlit.llm.messages import Reply, Request


class Log:
    """Replies by the keys of their requests: `with Log(path) as log: log.reply(key)`.

    A line is a prompt (once), or a request with its reply or with the reason why it has none.
    """

    def __init__(self, path: Path) -> None:
        self._journal = Journal(path, self._take)
        self._replies: dict[str, Reply] = {}
        self._prompts: set[str] = set()

    def __enter__(self) -> "Log":
        """Read what is there.

        Raises:
            OptionError: if the file can't be opened, or another job has it open.
            DataError: if a line is none of such a log.
        """
        self._journal.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._journal.__exit__(kind, error, traceback)

    def _take(self, line: dict[str, Any]) -> None:
        if "text" in line:
            self._prompts.add(line["prompt"])
        elif "reply" in line:
            self._replies[line["key"]] = Reply(**line["reply"])
        else:
            _ = line["failed"]

    def reply(self, key: str) -> Reply | None:
        """The reply to the request of this key; None where there is none yet."""
        return self._replies.get(key)

    def answered(self, request: Request, model: str, reply: Reply) -> None:
        """Keep a reply."""
        told = {name: getattr(reply, name) for name in Reply.__slots__}
        self._write(request, model, "reply", told)
        self._replies[request.key(model)] = reply

    def failed(self, request: Request, model: str, why: str) -> None:
        """Note that a request has no answer; it is asked again when it comes again."""
        self._write(request, model, "failed", why)

    def _write(self, request: Request, model: str, outcome: str, value: object) -> None:
        prompt = request.prompt
        if prompt.digest not in self._prompts:
            self._journal.write({"prompt": prompt.digest, "name": prompt.name, "text": prompt.text})
            self._prompts.add(prompt.digest)
        now = datetime.now(timezone.utc).isoformat(timespec="seconds")
        line = {"key": request.key(model), "at": now, "request": request.described(model), outcome: value}
        self._journal.write(line)
