"""Take the pictures of the page and of its files, docs/images/*.png, in a browser.

    python docs/screenshots.py

A server is started in a fresh folder, and a table of the 24 tales, four of them without a tale type, is imported on its
page. The map is that of the tales, the report that of a fit on StoryWorld. Needs the extra dev and Chromium at
/usr/bin/chromium.
"""

import csv
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from playwright.sync_api import Page, expect, sync_playwright

from narrlit.data.tales import sample_tales

ROOT = Path(__file__).resolve().parents[1]
IMAGES = ROOT / "docs" / "images"
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
SLOWEST = 300_000
"""Milliseconds that a view may take on a busy machine."""
DESK = {"width": 1180, "height": 820}
PHONE = {"width": 380, "height": 780}
WITHOUT_TYPE = ("rhodopis.txt", "tom_tit_tot.txt", "selkie_bride.txt", "singing_bone.txt")
QUERY = "A mistreated girl loses a shoe at a feast, and a prince finds her by it."


def main() -> None:
    """Take all pictures."""
    expect.set_options(timeout=SLOWEST)
    with TemporaryDirectory() as folder, served(Path(folder, "data")) as address, sync_playwright() as playwright:
        table = write_table(Path(folder, "tales.csv"))
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=ARGUMENTS)
        page = browser.new_page(viewport=DESK, locale="en-US", color_scheme="light")
        page.set_default_timeout(SLOWEST)
        page.goto(f"{address}/")
        take_import(page, table)
        take_reading(page, address)
        take_map(page, address)
        take_analyses(page, address)
        take_checking(page, address)
        dark = browser.new_page(viewport=DESK, locale="de-DE", color_scheme="dark")
        open_view(dark, address, "map?picture=tree&color=country")
        dark.wait_for_selector(".leaves button")
        take(dark, "dark")
        phone = browser.new_page(viewport=PHONE, locale="en-US", color_scheme="light")
        open_view(phone, address, f"search?q={QUERY}")
        take(phone, "phone")
        take_files(page, Path(folder), table)
        browser.close()


@contextmanager
def served(data: Path) -> Iterator[str]:
    """Run `narrlit serve` with an empty folder; yield its address."""
    command = [sys.executable, "-m", "narrlit", "serve", "--data", str(data), "--port", "0", "--no-browser"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)  # noqa: S603 (narrlit itself)
    try:
        for line in process.stderr or ():
            place = line.find("http://")
            if place >= 0:
                yield line[place:].split()[0].rstrip("/.,")
                break
    finally:
        process.terminate()
        process.wait()


def write_table(path: Path) -> Path:
    """Write the tales as a table, some of them without a tale type."""
    rows = []
    for tale in sample_tales():
        rows.append({**tale, "atu": "" if tale["file_name"] in WITHOUT_TYPE else tale["atu"]})
    for row in rows:
        row["id"] = row.pop("file_name").removesuffix(".txt")
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, ["id", "title", "country", "atu", "text"])
        writer.writeheader()
        writer.writerows(rows)
    return path


def take_import(page: Page, table: Path) -> None:
    """Import the table: the place to drop it, how it was understood, and the collection."""
    page.locator("#pick-files").set_input_files(table)
    expect(page.get_by_role("heading", name="Ready to start")).to_be_visible()
    take(page, "import")
    page.get_by_role("button", name="Start").click()
    expect(page.get_by_role("heading", name="Done")).to_be_visible()
    page.get_by_role("link", name="Collections").click()
    expect(page.get_by_role("heading", name="Collections")).to_be_visible()
    take(page, "collections")


def take_reading(page: Page, address: str) -> None:
    """Search, with the reason of the first result; a story; two stories."""
    open_view(page, address, f"search?q={QUERY}")
    page.get_by_role("button", name="Why this result?").first.click()
    page.wait_for_selector(".why table")
    page.wait_for_timeout(1000)
    take(page, "search")
    open_view(page, address, "story/swan_maiden")
    take(page, "story")
    open_view(page, address, "compare/feather_robe/swan_maiden")
    take(page, "compare")


def take_map(page: Page, address: str) -> None:
    """The tree with some stories on the list, and the plane under a lasso."""
    open_view(page, address, "map?picture=tree&color=atu")
    page.wait_for_selector(".leaves button")
    page.locator(".key button").first.click()
    take(page, "map")
    open_view(page, address, "map?picture=plane&color=country")
    page.get_by_role("button", name="Lasso").click()
    box = page.locator("canvas").bounding_box() or {}
    corners = [(0.46, 0.2), (0.56, 0.01), (0.98, 0.01), (0.99, 0.28), (0.7, 0.34), (0.48, 0.3)]
    for number, (x, y) in enumerate(corners):
        page.mouse.move(box["x"] + x * box["width"], box["y"] + y * box["height"], steps=5)
        if number == 0:
            page.mouse.down()
    page.mouse.up()
    take(page, "plane")


def take_analyses(page: Page, address: str) -> None:
    """Groups, agreement with the tale types, exact words, and the list."""
    open_view(page, address, "groups?column=atu")
    page.wait_for_selector(".groups h3")
    take(page, "groups")
    open_view(page, address, "agreement?column=atu")
    page.wait_for_selector("table")
    page.wait_for_timeout(3000)  # the ranking comes after the shares
    take(page, "agreement")
    open_view(page, address, "search?q=shoe*&mode=words")
    page.wait_for_selector("main table")
    take(page, "words")
    open_view(page, address, "list")
    take(page, "list")


def take_checking(page: Page, address: str) -> None:
    """A pair after two decisions, and the catalog."""
    open_view(page, address, "pairs?reader=Anna")
    for number in (1, 2):
        page.wait_for_selector(".decision")
        page.keyboard.press("s")
        expect(page.get_by_text(f"{number} of ")).to_be_visible()
    take(page, "pairs")
    open_view(page, address, "catalog?column=atu")
    page.wait_for_selector(".proposals")
    page.locator(".proposals summary").first.click()
    take(page, "catalog")


def take_files(page: Page, folder: Path, table: Path) -> None:
    """The map of the tales and a report, as files."""
    run("map", table, "--group", "atu", "--k", "3", "--out", folder / "map.html")
    shutil.copytree(ROOT / "configs", folder / "configs")
    run("fit", "--config", "configs/quickstart.yaml", cwd=folder)
    report = ["--projection", "pca", "--out", "report.html"]
    run("report", "runs/quickstart/version_0", "minilm", *report, cwd=folder)
    for name in ("map", "report"):
        page.goto(f"file://{folder}/{name}.html")
        page.wait_for_selector("main:not([aria-busy]) h1")
        take(page, name, prefix="")


def run(*arguments: str | Path, cwd: Path | None = None) -> None:
    """Run a command of narrlit."""
    command = [sys.executable, "-m", "narrlit", *map(str, arguments)]
    subprocess.run(command, check=True, cwd=cwd)  # noqa: S603 (narrlit itself)


def open_view(page: Page, address: str, view: str) -> None:
    """Open a view of the collection."""
    page.goto("about:blank")
    page.goto(f"{address}/#/tales/{view}")
    page.wait_for_selector("main:not([aria-busy]) h1")


def take(page: Page, name: str, prefix: str = "page-") -> None:
    """Take a picture of what the window shows."""
    page.wait_for_timeout(700)
    page.screenshot(path=IMAGES / f"{prefix}{name}.png")
    print(f"docs/images/{prefix}{name}.png")


if __name__ == "__main__":
    main()
