"""Files of JSON, and of one JSON value a line."""

import json
from pathlib import Path


def read_json(path):
    """Read the value in a file."""
    return json.loads(Path(path).read_text(encoding="utf-8"))


def to_json_lines(rows):
    """The text of a file of these rows."""
    return "".join(json.dumps(row) + "\n" for row in rows)


def write_json_lines(path, rows):
    """Write a file of these rows and return its path."""
    Path(path).write_text(to_json_lines(rows), encoding="utf-8")
    return path


def read_json_lines(path):
    """Read the rows of a file."""
    with Path(path).open(encoding="utf-8") as file:
        return [json.loads(line) for line in file]
