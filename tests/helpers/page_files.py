"""Pages opened from disk in headless Chromium, without a network."""

import contextlib
import json
import re
from pathlib import Path

import pytest

CHROMIUM = Path("/usr/bin/chromium")
needs_browser = pytest.mark.skipif(not CHROMIUM.is_file(), reason=f"{CHROMIUM} is not installed")


@contextlib.contextmanager
def opened(path, place="", **options):
    """Open a file at an address inside it; any error, refused script or style, or request fails the test."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    problems = []
    with playwright.sync_playwright() as program:
        arguments = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
        browser = program.chromium.launch(executable_path=str(CHROMIUM), args=arguments)
        context = browser.new_context(**{"viewport": {"width": 1200, "height": 900}, "locale": "en-US", **options})
        context.set_offline(True)
        page = context.new_page()
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("console", lambda message: problems.append(message.text))
        page.on("request", lambda request: problems.append(request.url) if is_foreign(request.url, path) else None)
        page.on("dialog", lambda dialog: problems.append(dialog.message))
        page.goto(f"{path.as_uri()}{place}")
        page.wait_for_selector("main:not([aria-busy]) h1")
        yield page
        browser.close()
    assert problems == []


def is_foreign(url, path):
    """A request for something else than the file and what is in it."""
    return not url.startswith((path.as_uri(), "data:", "blob:"))


def carried(page):
    """The data that the HTML of a page carries."""
    return json.loads(re.search(r'id="carried">(.*?)</script>', page, re.DOTALL)[1])


def saved(page, control):
    """Click on a control that saves a file; return its name and content."""
    with page.expect_download() as download:
        page.click(control)
    return download.value.suggested_filename, Path(download.value.path()).read_bytes()
