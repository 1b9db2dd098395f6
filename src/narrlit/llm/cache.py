"""Answers of language models by request, in one SQLite file: a resumed job sends no answered request again."""

import json
import os
import sqlite3
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from narrlit.errors import OptionError, reading

_TABLES = """
CREATE TABLE IF NOT EXISTS answers (
    key TEXT PRIMARY KEY, model TEXT, prompt TEXT, request TEXT, batch TEXT,
    text TEXT, finish TEXT, prompt_tokens INTEGER, completion_tokens INTEGER,
    created TEXT DEFAULT CURRENT_TIMESTAMP
);
CREATE TABLE IF NOT EXISTS batches (name TEXT PRIMARY KEY, id TEXT);
CREATE INDEX IF NOT EXISTS answers_by_batch ON answers (batch) WHERE batch IS NOT NULL;
"""
_INSERT = "INSERT OR IGNORE INTO answers (key, model, prompt, request) VALUES (?, ?, ?, ?)"
_ANSWER = (
    "UPDATE answers SET text = ?, finish = ?, prompt_tokens = ?, completion_tokens = ?, batch = NULL WHERE key = ?"
)


@dataclass(frozen=True, slots=True)
class Reply:
    """Answer of a language model; `finish` is the finish reason: `stop`, `length` (cut off), `refusal`, ..."""

    text: str
    finish: str | None = None
    prompt_tokens: int = 0
    completion_tokens: int = 0


class AnswerCache:
    """Requests with their answers, and unfinished batches; only its owner can read the file, which contains stories."""

    def __init__(self, path: Path) -> None:
        """Open or create the file; raise OptionError if it can't be written, or is another kind of file."""
        self.path = path
        with self._errors():
            path.parent.mkdir(parents=True, exist_ok=True)
            os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
            # In a notebook, which already runs an event loop, the job runs in another thread.
            self._database = sqlite3.connect(path, timeout=60, check_same_thread=False)
            try:
                self._database.execute("PRAGMA journal_mode = WAL")
                self._database.execute("PRAGMA synchronous = NORMAL")
                self._database.executescript(_TABLES)
            except sqlite3.Error:
                self._database.close()
                raise

    def __enter__(self) -> "AnswerCache":
        return self

    def __exit__(self, *exception: object) -> None:
        self._database.close()

    def _errors(self) -> AbstractContextManager[None]:
        """Convert exceptions of the database to an OptionError."""
        return reading("broken_answer_cache", self.path, error=OptionError)

    def get(self, key: str) -> Reply | None:
        """Return the answer to the request with this key; None if there is none."""
        query = "SELECT text, finish, prompt_tokens, completion_tokens FROM answers WHERE key = ?"
        with self._errors():
            row = self._database.execute(f"{query} AND finish IS NOT NULL", (key,)).fetchone()
        return None if row is None else Reply(*row)

    def put(self, key: str, request: Mapping[str, object], reply: Reply) -> None:
        """Store an answer and its request (JSON data with `model` and `prompt`) durably."""
        with self._errors(), self._database:
            self._database.execute(_INSERT, _row(key, request))
            self._database.execute(_ANSWER, _values(key, reply))

    def forget(self, keys: Iterable[str]) -> None:
        """Remove requests and their answers."""
        with self._errors(), self._database:
            self._database.executemany("DELETE FROM answers WHERE key = ?", [(key,) for key in keys])

    def add_batch(self, name: str, requests: Mapping[str, Mapping[str, object]]) -> None:
        """Record a batch that is about to be sent, with its requests by key."""
        with self._errors(), self._database:
            self._database.execute("INSERT INTO batches (name) VALUES (?)", (name,))
            self._database.executemany(_INSERT, [_row(key, request) for key, request in requests.items()])
            self._database.executemany("UPDATE answers SET batch = ? WHERE key = ?", [(name, key) for key in requests])

    def set_batch_id(self, name: str, batch_id: str) -> None:
        """Record the id that the server gave to a batch."""
        with self._errors(), self._database:
            self._database.execute("UPDATE batches SET id = ? WHERE name = ?", (batch_id, name))

    def finish_batch(self, name: str, replies: Mapping[str, Reply]) -> None:
        """Store the answers of a batch and remove the batch, in one transaction."""
        with self._errors(), self._database:
            self._database.executemany(_ANSWER, [_values(key, reply) for key, reply in replies.items()])
            self._database.execute("DELETE FROM answers WHERE batch = ?", (name,))
            self._database.execute("DELETE FROM batches WHERE name = ?", (name,))

    def batches(self) -> list[tuple[str, str | None]]:
        """List the unfinished batches: name, and the server's id if it is known."""
        with self._errors():
            return list(self._database.execute("SELECT name, id FROM batches ORDER BY rowid"))


def _row(key: str, request: Mapping[str, Any]) -> tuple[str, ...]:
    """List the values of `_INSERT`."""
    return key, request["model"], request["prompt"], json.dumps(request, ensure_ascii=True)


def _values(key: str, reply: Reply) -> tuple[object, ...]:
    """List the values of `_ANSWER`."""
    # Lone surrogates can be neither stored nor written to a file.
    text = reply.text.encode("utf-8", "replace").decode()
    return text, reply.finish or "stop", reply.prompt_tokens, reply.completion_tokens, key
