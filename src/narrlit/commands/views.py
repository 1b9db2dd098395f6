"""narrlit views: check a file of stories' views."""

from typing import Literal

import narrlit
from narrlit.commands.options import InputOptions
from narrlit.console import print_result


def views(action: Literal["check"], file: str, stories: str, *, files: InputOptions, json: bool = False) -> int:
    """Check that a file of views covers the stories that need them; exit code 1: it does not.

    Args:
        action: check counts the views, and lists what is missing or suspicious.
        file: rows of text, theme, plot_events (or course_of_action) and outcome; or several files with commas between.
        stories: a file of stories, triples or training examples.
        files: how the file of stories is read.
        json: print one JSON object, and nothing else, to stdout.
    """
    result = narrlit.check_views(file, stories, layout=files.layout)
    print_result(result, json)
    return int(bool(result.missing))
