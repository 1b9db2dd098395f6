"""narrlit views: check a file of views."""

from typing import Literal

import narrlit
from narrlit.console import print_result
from narrlit.data.rows import Layout


def views(action: Literal["check"], file: str, stories: str, *, files: Layout, json: bool = False) -> int:
    """Check that a file of views covers all stories; the exit code is 1 if views are missing.

    Args:
        action: check counts the views, and lists missing and suspicious ones.
        file: file of views: rows of text, theme, plot_events (or course_of_action) and outcome; or several,
            comma-separated.
        stories: file of stories, triples or training examples.
        files: columns and lines of the file of stories.
        json: print one JSON object to stdout, and nothing else.
    """
    result = narrlit.check_views(file, stories, layout=files)
    print_result(result, json)
    return int(bool(result.missing))
