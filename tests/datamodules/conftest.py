"""Fixtures of the data tests."""

import json

import pytest


@pytest.fixture
def make(tmp_path):
    """Write a file of text, of bytes, or of rows as JSON Lines."""

    def write(name, content):
        path = tmp_path / name
        if isinstance(content, list):
            content = "".join(json.dumps(row) + "\n" for row in content)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write
