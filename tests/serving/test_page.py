"""The page as a reader uses it, in headless Chromium: drop, wait, search, compare, map, pairs, catalog, export."""

import csv
import io
import re
from itertools import combinations
from pathlib import Path
from urllib.parse import unquote

import httpx
import pandas as pd
import pytest
from servers import running_server

import narrlit
from narrlit.data.tales import sample_tales

CHROMIUM = Path("/usr/bin/chromium")
playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.long,
    pytest.mark.skipif(not CHROMIUM.is_file(), reason=f"{CHROMIUM} is not installed"),
]
expect = playwright.expect
expect.set_options(timeout=30_000)
VIEWS = {
    "collections": "#/",
    "search": "#/tales/search?q=A+girl+loses+a+shoe+at+a+feast.",
    "filtered": "#/tales/search?in.country=Germany",
    "story": "#/tales/story/cinderella",
    "compare": "#/tales/compare/feather_robe/swan_maiden",
    "tree": "#/tales/map?picture=tree&color=country",
    "plane": "#/tales/map?picture=plane&color=country",
    "words": "#/tales/search?q=the&mode=words",
    "groups": "#/tales/groups",
    "agreement": "#/tales/agreement?column=atu&control=country",
    "pairs": "#/tales/pairs?reader=axe",
    "catalog": "#/tales/catalog?column=atu",
    "list": "#/tales/list",
    "missing": "#/nothing/search",
}
READY = {
    "tree": ".leaves button",
    "plane": ".plane canvas",
    "groups": ".groups",
    "agreement": ".intervals",
    "pairs": ".decision, .empty",
    "catalog": ".panel .finding",
}
"""What a view that computes shows in the end."""


WITHOUT_TYPE = ("rhodopis.txt", "tom_tit_tot.txt", "selkie_bride.txt", "singing_bone.txt")


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """The data folder of the server."""
    return tmp_path_factory.mktemp("data")


@pytest.fixture(autouse=True)
def no_project(data):
    """Begin each test without lists, notes and decisions."""
    (data / "collections" / "tales.project.jsonl").unlink(missing_ok=True)


@pytest.fixture(scope="module")
def site(data, served_encoder):
    """A server with the tales, four of them without a tale type."""
    rows = []
    for tale in sample_tales():
        name = tale.pop("file_name")
        atu = None if name in WITHOUT_TYPE else tale["atu"]
        rows.append({**tale, "id": name.removesuffix(".txt"), "atu": atu})
    narrlit.Index.create(data / "collections" / "tales", pd.DataFrame(rows), narrlit.load("minilm"))
    with running_server(data, served_encoder, model="minilm") as server:
        yield server.url


@pytest.fixture(scope="module")
def browser():
    arguments = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    with playwright.sync_playwright() as program:
        browser = program.chromium.launch(executable_path=str(CHROMIUM), args=arguments, headless=True)
        yield browser
        browser.close()


@pytest.fixture
def page(browser):
    """A page that fails the test for any error or refused request."""
    context = browser.new_context(viewport={"width": 1200, "height": 900}, locale="en-US")
    page = context.new_page()
    problems = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
    page.on(
        "request",
        lambda request: (
            problems.append(request.url)
            if "127.0.0.1" not in request.url and not request.url.startswith("blob:")
            else None
        ),
    )
    yield page
    context.close()
    assert [problem for problem in problems if "404" not in problem] == []


def visit(page, site, name):
    page.goto("about:blank")
    page.goto(f"{site}/{VIEWS.get(name, name)}")
    page.wait_for_selector("main:not([aria-busy]) h1", timeout=60_000)
    if name in READY:
        page.wait_for_selector(READY[name], timeout=60_000)


def drop(page, files):
    """Drop files, {name: text}, on the page."""
    page.evaluate(
        """files => {
            const transfer = new DataTransfer();
            for (const [name, text] of Object.entries(files)) transfer.items.add(new File([text], name));
            const event = new DragEvent("drop", {dataTransfer: transfer, bubbles: true});
            document.getElementById("drop").dispatchEvent(event);
        }""",
        files,
    )


def table_of(rows):
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


SHIPS = [
    {
        "id": f"ship{number}",
        "name": f"Ship {number}",
        "story": f"Captain {number} sails to the island of {word}. " * 12,
        "sea": sea,
    }
    for number, (word, sea) in enumerate(
        [("apples", "north"), ("bears", "north"), ("clocks", "south"), ("doves", "south")]
    )
]


def test_dropped_files_become_a_collection(page, site):
    visit(page, site, "collections")
    drop(page, {"ships.csv": table_of(SHIPS), "picture.jpg": "no story", "notes.txt": "A note about a boat. " * 30})
    expect(page.get_by_role("heading", name="Ready to start")).to_be_visible()
    expect(page.get_by_text("picture.jpg")).to_be_visible()

    page.reload()
    expect(page.get_by_role("heading", name="Ready to start")).to_be_visible()
    ships = page.locator(".files > li", has_text="ships.csv")
    ships.get_by_label("Title column").select_option("name")
    ships.get_by_label("Text column").select_option("story")
    page.locator(".files > li", has_text="notes.txt").get_by_label("Skip this file").check()
    expect(page.get_by_text("4 stories with")).to_be_visible()
    expect(ships.get_by_text("Ship 0")).to_be_visible()

    page.get_by_label("Name of the collection").fill("ships")
    page.get_by_role("button", name="Start").click()
    page.wait_for_selector("#pause, .finding")
    page.reload()
    expect(page.get_by_role("heading", name="Done")).to_be_visible(timeout=300_000)

    page.locator("main").get_by_role("link", name="Search").click()
    expect(page.get_by_role("heading", name="4 stories")).to_be_visible()
    page.locator("#chip-sea-north").click()
    expect(page.get_by_role("heading", name="2 stories")).to_be_visible()
    assert page.evaluate("document.activeElement.id") == "chip-sea-north"

    visit(page, site, "collections")
    page.locator("li", has_text="ships").get_by_role("button", name="Delete").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.get_by_role("link", name="ships")).to_have_count(0)


def drop_folder(page, folder):
    """Drop a folder of the disk on the page, as a file manager does."""
    box = page.locator("#drop").bounding_box()
    place = {"x": box["x"] + box["width"] / 2, "y": box["y"] + box["height"] / 2}
    dragged = {"items": [], "files": [str(folder)], "dragOperationsMask": 1}
    tools = page.context.new_cdp_session(page)
    for kind in ("dragEnter", "dragOver", "drop"):
        tools.send("Input.dispatchDragEvent", {"type": kind, **place, "data": dragged})


def test_a_dropped_folder_is_read_with_its_folders(page, site, tmp_path):
    folder = tmp_path / "harbor"
    (folder / "old" / "lost").mkdir(parents=True)
    names = [f"old/ship{number}.txt" for number in range(120)]  # a browser lists 100 files of a folder at once
    for name in ("lighthouse.txt", "old/lost/wreck.txt", *names):
        (folder / name).write_text(f"The story of {name}, which sails home at last. " * 8, encoding="utf-8")
    (folder / ".hidden.txt").write_text("no story", encoding="utf-8")

    visit(page, site, "collections")
    drop_folder(page, folder)

    expect(page.get_by_role("heading", name="Ready to start")).to_be_visible(timeout=120_000)
    expect(page.get_by_label("Name of the collection")).to_have_value("harbor")
    expect(page.get_by_text("122 stories with")).to_be_visible()
    page.get_by_role("button", name=re.compile("Show .* more file")).click()
    expect(page.locator(".files > li", has_text="harbor/old/lost/wreck.txt")).to_be_visible()
    expect(page.locator(".files > li", has_text=".hidden.txt")).to_have_count(0)


def test_an_import_can_be_paused_and_resumed(page, site):
    visit(page, site, "collections")
    rows = [
        {"id": f"s{n}", "title": f"Story {n}", "text": f"A traveler of town {n} finds a lamp. " * 150}
        for n in range(40)
    ]
    drop(page, {"many.csv": table_of(rows)})
    page.get_by_label("Name of the collection").fill("many")
    page.get_by_role("button", name="Start").click()
    expect(page.locator(".latest h2")).to_contain_text("arrived", timeout=300_000)
    assert re.fullmatch(r"Story \d+", page.locator(".latest li").first.inner_text())
    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_role("heading", name="Paused")).to_be_visible()

    visit(page, site, "collections")
    page.locator("li", has_text="many").get_by_role("link", name="Continue").click()
    page.get_by_role("button", name="Resume").click()
    expect(page.get_by_role("heading", name="Stories are being compared")).to_be_visible()

    # The list of collections follows what goes on in another tab.
    address = page.url
    visit(page, site, "collections")
    unfinished = page.locator("section", has=page.get_by_role("heading", name="Not finished"))
    expect(unfinished.locator("li", has_text="many")).to_contain_text("Stories are being compared")
    id = address.rpartition("=")[2]
    httpx.post(f"{site}/imports/{id}/pause").raise_for_status()
    expect(unfinished.locator("li", has_text="many")).to_contain_text("Paused")
    page.goto(address)
    page.get_by_role("button", name="Discard").click()
    page.get_by_role("dialog").get_by_role("button", name="Discard").click()
    expect(page.get_by_role("heading", name="Collections")).to_be_visible()


def test_files_that_cannot_be_read_are_not_sent(page, site):
    visit(page, site, "collections")
    drop(page, {"picture.jpg": "no story"})
    expect(page.get_by_text("None of these files can be read")).to_be_visible()


def test_a_search_leads_to_a_story_and_a_comparison(page, site):
    visit(page, site, "#/tales/search")
    page.get_by_label("What happens in the story?").fill(
        "A girl loses a shoe at a feast, and a prince finds her by it."
    )
    page.keyboard.press("Enter")
    first = page.locator(".hit").first
    expect(first.locator("mark")).not_to_be_empty()
    assert page.locator(".hit").count() == 10
    first.get_by_role("button", name="Why this result?").click()
    expect(first.locator(".why tbody tr").first).to_be_visible()

    # The same address shows the same hits.
    titles = page.locator(".hit h2").all_inner_texts()
    page.reload()
    expect(page.locator(".hit h2")).to_have_text(titles)

    title = titles[0].split(". ", 1)[1] if ". " in titles[0] else titles[0]
    first.get_by_role("link", name=title, exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_have_text(title)
    expect(page.locator("article mark")).not_to_be_empty()
    page.locator(".nearest").get_by_role("link", name="Compare with").first.click()
    expect(page.get_by_role("heading", level=1)).to_contain_text(f"{title} beside")
    assert page.locator(".links tbody tr").count() > 0
    before = page.get_by_role("heading", level=1).inner_text().split(" beside ")
    page.get_by_role("link", name="Swap sides").click()
    expect(page.get_by_role("heading", level=1)).to_have_text(" beside ".join(reversed(before)))


def test_filters_narrow_a_search(page, site):
    visit(page, site, "search")
    page.locator("#chip-country-Germany").click()
    expect(page.locator("#chip-country-Germany")).to_have_attribute("aria-pressed", "true")
    assert all("Germany" in line for line in page.locator(".hit .meta").all_inner_texts())


def test_the_first_hit_is_in_sight_and_three_tabs_from_the_query(page, site):
    page.set_viewport_size({"width": 1180, "height": 700})
    visit(page, site, "search")
    page.locator("#query").focus()
    for _ in range(3):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.matches('.hit h2 a')"):
            break
    first = page.locator(".hit h2 a").first
    expect(first).to_be_focused()
    assert page.locator(".hit").first.bounding_box()["y"] < 500
    assert page.locator(".filters").bounding_box()["x"] > page.locator(".hits").bounding_box()["x"] + 500


def test_filters_are_folded_on_a_phone(browser, site):
    context = browser.new_context(
        viewport={"width": 380, "height": 800}, locale="en-US", is_mobile=True, has_touch=True
    )
    page = context.new_page()
    visit(page, site, "search")
    expect(page.locator("#chip-country-Germany")).to_be_hidden()
    assert page.locator(".hit h2").first.bounding_box()["y"] < 700
    page.get_by_text("Options and filters").click()
    page.locator("#chip-country-Germany").click()
    expect(page.get_by_text("Options and filters (1 chosen)")).to_be_visible()
    expect(page.locator("#chip-country-Germany")).to_be_hidden()
    assert all("Germany" in line for line in page.locator(".hit .meta").all_inner_texts())
    context.close()


def test_similar_stories_of_a_story(page, site):
    visit(page, site, "story")
    page.get_by_role("link", name="Find similar stories").click()
    expect(page.locator(".banner")).to_contain_text("Cinderella")
    assert "Cinderella" not in page.locator(".hit h2").all_inner_texts()
    page.get_by_role("button", name="Show all stories").click()
    expect(page.get_by_role("heading", name="24 stories")).to_be_visible()


def test_a_lasso_puts_stories_on_the_list(page, site):
    visit(page, site, "plane")
    page.get_by_role("button", name="Lasso").click()
    box = page.locator("canvas").bounding_box()
    corners = [(0.01, 0.01), (0.99, 0.01), (0.99, 0.99), (0.01, 0.99), (0.01, 0.02)]
    places = [(box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in corners]
    page.mouse.move(*places[0])
    page.mouse.down()
    for place in places[1:]:
        page.mouse.move(*place, steps=4)
    page.mouse.up()
    expect(page.get_by_role("heading", name="24 stories on “My list”")).to_be_visible()
    with page.expect_download() as saved:
        page.get_by_role("button", name="Table (CSV)").click()
    assert len(Path(saved.value.path()).read_text(encoding="utf-8").splitlines()) == 25

    # The list is the same in every view, and after a reload.
    page.reload()
    expect(page.get_by_role("link", name="My list (24)")).to_be_visible()
    page.get_by_role("button", name="Clear the list").click()
    expect(page.get_by_role("link", name="My list (0)")).to_be_visible()


@pytest.mark.parametrize("form", ["csv", "xlsx", "graphml", "palladio", "svg", "bibtex", "ris", "csl", "txt"])
def test_every_export(page, site, form):
    visit(page, site, "tree")
    for title in ("Cinderella", "Ye Xian", "Rhodopis"):
        choose(page, title)
    with page.expect_download() as saved:
        page.locator(f'.panel [data-format="{form}"]').click()
    assert Path(saved.value.path()).stat().st_size > 0


def choose(page, title):
    """Show a story of the tree, and put it on the list or take it off."""
    page.locator(".leaves").get_by_role("button", name=title).click()
    expect(page.locator(".near-stories h2")).to_contain_text(title)
    page.locator(".near-stories article button").click()


def test_the_tree_selects_by_story_branch_and_color(page, site):
    visit(page, site, "tree")
    choose(page, "Cinderella")
    expect(page.get_by_role("heading", name="1 story on “My list”")).to_be_visible()
    expect(page.locator(".leaves li.chosen")).to_have_count(1)
    choose(page, "Cinderella")
    expect(page.get_by_role("heading", name="0 stories on “My list”")).to_be_visible()
    page.locator(".leaves").get_by_role("button", name="Ye Xian").click()  # shown, and not chosen
    expect(page.locator(".near-stories h2")).to_contain_text("Ye Xian")
    expect(page.locator(".leaves [aria-pressed=true]")).to_have_text("Ye Xian")
    expect(page.get_by_role("heading", name="0 stories on “My list”")).to_be_visible()
    page.locator(".key").get_by_role("button", name="Germany", exact=True).click()
    faded = page.locator(".leaves .faded")
    assert faded.count() > 1
    page.locator(".key").get_by_role("button", name="Germany", exact=True).click()
    expect(faded).to_have_count(0)
    page.locator(".key").get_by_role("button", name="My list”: Germany").click()
    count = page.locator(".chosen li").count()
    assert count > 1
    page.locator(".branches g").last.dispatch_event("click")
    expect(page.get_by_role("heading", name="24 stories on “My list”")).to_be_visible()

    page.locator("#color").select_option("atu")
    assert "color=atu" in page.url
    expect(page.locator(".key").get_by_role("button", name="no value", exact=True)).to_be_visible()
    page.locator(".heat").click(position={"x": 40, "y": 6})
    expect(page.get_by_role("heading", level=1)).to_contain_text(" beside ")


def test_a_map_finds_words_in_texts_and_shows_the_nearest_stories(page, site):
    visit(page, site, "tree")
    page.fill("#find", "glass")  # in no title
    expect(page.locator(".matches")).to_contain_text("Cinderella")
    page.locator(".matches").get_by_role("button", name="Cinderella").click()
    nearest = httpx.get(f"{site}/collections/tales/stories/cinderella").json()["nearest"]
    expect(page.locator(".near-stories .nearest li")).to_have_count(len(nearest))
    expect(page.locator(".leaves .near")).to_have_count(len(nearest))


@pytest.mark.parametrize("picture", ["tree", "plane"])
def test_a_map_is_saved_as_a_picture(page, site, picture):
    visit(page, site, picture)
    with page.expect_download() as saved:
        page.click("#save-svg")
    drawing = Path(saved.value.path()).read_text(encoding="utf-8")
    assert drawing.count("<circle" if picture == "plane" else "<text") >= 24
    with page.expect_download() as saved:
        page.click("#save-png")
    assert Path(saved.value.path()).read_bytes().startswith(b"\x89PNG")


def test_back_returns_to_the_place_in_the_plane(page, site):
    visit(page, site, "plane")
    page.get_by_role("button", name="Zoom in").click()
    page.locator("canvas").focus()
    page.keyboard.press("ArrowLeft")
    expect(page).to_have_url(re.compile("at=1.400%2C60%2C0"))
    page.fill("#find", "glass")
    page.locator(".matches").get_by_role("button", name="Cinderella").click()
    page.locator(".near-stories h2 a").click()
    page.wait_for_url("**/story/cinderella**")
    page.go_back()
    page.wait_for_selector(".plane canvas")
    assert "at=1.400,60,0" in unquote(page.url)
    page.get_by_role("button", name="Show all", exact=True).click()
    expect(page).not_to_have_url(re.compile("at="))


def test_two_stories_that_are_compared_are_decided(page, site):
    visit(page, site, "compare")
    decided = f"{site}/collections/tales/pairs/decided"
    with page.expect_response("**/pairs/decisions"):
        page.locator("#decision").select_option("different")
    pairs = httpx.get(decided, params={"reader": "reader 1"}).json()
    assert [(pair["left"]["id"], pair["right"]["id"], pair["decision"]) for pair in pairs] == [
        ("feather_robe", "swan_maiden", "different")
    ]
    page.reload()
    expect(page.locator("#decision")).to_have_value("different")
    with page.expect_response("**/pairs/decisions"):
        page.locator("#decision").select_option("")
    assert httpx.get(decided, params={"reader": "reader 1"}).json() == []


def test_names_in_the_plane_stand_beside_points(page, site):
    visit(page, site, "plane")
    with page.expect_download() as saved:
        page.get_by_role("button", name="Save as SVG").click()
    drawing = Path(saved.value.path()).read_text(encoding="utf-8")
    assert drawing.count("<circle") == 24
    covered = page.evaluate(
        """drawing => {
            const holder = document.createElement("div");
            holder.innerHTML = drawing;
            document.body.append(holder);
            const places = (dot) => [dot.cx.baseVal.value, dot.cy.baseVal.value];
            const dots = [...holder.querySelectorAll("circle")].map(places);
            const names = [...holder.querySelectorAll("text.group, text.title")];
            const boxes = names.map((name) => name.getBBox());
            const covering = names.filter((_, at) => {
                const box = boxes[at];
                return dots.some(([x, y]) => x > box.x && x < box.x + box.width && y > box.y && y < box.y + box.height);
            });
            return [names.length, covering.map((name) => name.textContent)];
        }""",
        drawing,
    )
    assert covered[0] > 12
    assert covered[1] == []


def test_pairs_are_decided_with_keys_and_undone(page, site):
    visit(page, site, "#/tales/pairs?reader=Anna")
    page.wait_for_selector(".decision")
    titles = page.locator("#pair h2")
    first = titles.all_inner_texts()
    all_pairs = int(re.search(r"of (\d+)", page.get_by_text(" pairs decided", exact=False).first.inner_text())[1])
    page.keyboard.press("s")
    expect(page.get_by_text(f"1 of {all_pairs} pairs decided")).to_be_visible()
    page.keyboard.press("d")
    expect(page.get_by_text(f"2 of {all_pairs} pairs decided")).to_be_visible()
    page.keyboard.press("z")
    expect(page.get_by_text(f"1 of {all_pairs} pairs decided")).to_be_visible()
    page.keyboard.press("z")
    expect(page.get_by_text(f"0 of {all_pairs} pairs decided")).to_be_visible()
    expect(titles).to_have_text(first)

    page.keyboard.press("u")
    expect(page.get_by_text(f"1 of {all_pairs} pairs decided")).to_be_visible()
    page.keyboard.press("s")
    expect(page.get_by_text(f"2 of {all_pairs} pairs decided")).to_be_visible()
    page.reload()
    expect(page.get_by_text(f"2 of {all_pairs} pairs decided")).to_be_visible()
    with page.expect_download() as saved:
        page.get_by_role("button", name="All decisions (CSV)").click()
    assert "unsure" in Path(saved.value.path()).read_text(encoding="utf-8")

    # A second reader decides the same pairs; the name is typed without deciding.
    page.get_by_label("Name of the reader").fill("dudu")
    page.keyboard.press("Tab")
    expect(page.get_by_text(f"0 of {all_pairs} pairs decided")).to_be_visible()
    page.locator("h1").click()
    page.keyboard.press("s")
    expect(page.get_by_text(f"1 of {all_pairs} pairs decided")).to_be_visible()
    page.keyboard.press("s")
    expect(page.get_by_text("Anna, dudu have decided")).to_be_visible()


def test_a_proposal_of_the_catalog_is_accepted(page, site):
    visit(page, site, "catalog")
    expect(page.get_by_text("proposals are right")).to_be_visible()
    card = page.locator(".proposals > li").first
    card.get_by_text("speak").first.click()
    expect(card.locator("details li").first).to_be_visible()
    card.get_by_role("button", name="Accept").first.click()
    expect(card.locator(".banner")).to_contain_text("is accepted")
    card.get_by_role("button", name="Undo").click()
    expect(card.locator(".banner")).to_be_hidden()
    card.get_by_role("button", name="Accept").first.click()
    expect(card.locator(".banner")).to_contain_text("is accepted")
    value = card.locator(".value b").first.inner_text()
    visit(page, site, "#/tales/search")
    known = pd.Series([tale["atu"] for tale in sample_tales() if tale["file_name"] not in WITHOUT_TYPE])
    expect(page.locator(f"[id='chip-atu-{value}'] small")).to_have_text(str((known == value).sum() + 1))
    visit(page, site, "catalog")
    expect(page.get_by_text("1 value decided so far")).to_be_visible()
    page.locator(".proposals > li").nth(1).get_by_role("button", name="Reject all").click()
    expect(page.locator(".proposals > li").nth(1).locator(".banner")).to_contain_text("rejected")
    expect(page.get_by_text("2 values decided so far")).to_be_visible()
    with page.expect_download() as saved:
        page.get_by_role("button", name="Table (CSV)").click()
    assert Path(saved.value.path()).read_text(encoding="utf-8-sig").count("510A") >= 2


def test_the_printed_address_opens_the_page_and_a_plain_one_does_not(browser, tmp_path, served_encoder):
    token = "a-token-of-more-than-sixteen-characters"
    with running_server(tmp_path, served_encoder, model="minilm", token=token) as server:
        context = browser.new_context()
        page = context.new_page()
        assert page.goto(f"{server.url}/").status == 401

        page.goto(f"{server.url}/?token={token}")
        page.wait_for_selector("main:not([aria-busy]) h1")
        assert token not in page.url

        page.reload()
        page.wait_for_selector("main:not([aria-busy]) h1")
        assert token not in str(context.cookies())
        context.close()


def test_german_and_dark_are_kept(page, site):
    visit(page, site, "collections")
    page.locator("#language").select_option("de")
    expect(page.get_by_role("heading", name="Sammlungen")).to_be_visible()
    page.locator("#theme").select_option("dark")
    page.reload()
    expect(page.get_by_role("heading", name="Sammlungen")).to_be_visible()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(13, 17, 23)"


def test_the_glossary_opens_by_hover_and_focus(page, site):
    visit(page, site, "search")
    page.locator(".hit .term").first.focus()
    expect(page.get_by_role("tooltip")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("tooltip")).to_be_hidden()
    page.locator(".hit .term").nth(1).hover()
    expect(page.get_by_role("tooltip")).to_contain_text("stands out")


def test_similarities_are_told_in_words(page, site):
    visit(page, site, "story")
    nearest = httpx.get(f"{site}/collections/tales/stories/cinderella").json()["nearest"]
    words = {"much": "much alike", "rather": "rather alike", "little": "a little alike", "not": "not alike"}
    lines = page.locator(".nearest .similarity").all_inner_texts()
    for line, near, rank in zip(lines[:3], nearest, ("nearest", "2nd nearest", "3rd nearest"), strict=False):
        assert line.startswith(f"{words[near['standing']['alike']]} · {rank} of 23")

    scale = httpx.get(f"{site}/collections/tales/retellings").json()
    expect(page.locator(".scale-note")).to_contain_text(f"{scale['threshold']:.3f}")
    above = sum(near["similarity"] > scale["threshold"] for near in nearest)
    assert page.locator(".nearest .above").count() == above
    assert page.locator(".nearest i.marked").count() == len(nearest)


def test_the_strongest_links_come_first_and_their_shares_are_of_100_percent(page, site):
    visit(page, site, "#/tales/compare/cupid_and_psyche/east_of_the_sun")
    body = {"left": {"id": "cupid_and_psyche"}, "right": {"id": "east_of_the_sun"}}
    answer = httpx.post(f"{site}/collections/tales/explain", json=body).json()
    links = sorted(answer["links"], key=lambda link: -link["share"])
    shares = [link["share"] / answer["score"] for link in links]
    assert sum(shares) == pytest.approx(1)
    assert len(shares) > 10
    cells = page.locator(".links tbody td:last-child")
    expect(cells).to_have_count(10)
    page.locator(".more-links").click()
    arrows = {"both": "↔", "a to b": "→", "b to a": "←"}
    expect(cells).to_have_text(
        [f"{share:.0%} {arrows[link['direction']]}" for share, link in zip(shares, links, strict=True)]
    )

    page.get_by_role("button", name="Both texts in full").click()
    expect(page.locator(".row.linked").first).to_be_visible()
    assert "view=texts" in page.url
    page.reload()
    expect(page.locator(".row.linked").first).to_be_visible()


def test_a_comparison_is_saved_as_tei(page, site):
    visit(page, site, "compare")
    with page.expect_download() as saved:
        page.get_by_role("button", name="Save as TEI").click()
    assert saved.value.suggested_filename == "feather_robe-swan_maiden.xml"
    assert "<linkGrp" in Path(saved.value.path()).read_text(encoding="utf-8")


def test_groups_follow_the_threshold(page, site):
    visit(page, site, "groups")
    answer = httpx.get(f"{site}/collections/tales/retellings").json()
    expect(page.locator(".groups > li")).to_have_count(len(answer["groups"]))
    assert float(page.locator("#threshold").input_value()) == pytest.approx(answer["threshold"], abs=5e-4)
    page.locator("#threshold").fill("less")
    page.get_by_role("button", name="Apply").click()
    assert page.locator("#threshold").evaluate("input => input.validationMessage") == "Write a number, such as 0.1"
    expect(page.locator(".groups > li")).to_have_count(len(answer["groups"]))
    page.locator("#threshold").fill("-0,2")  # as in many languages
    page.get_by_role("button", name="Apply").click()
    expect(page.locator("#automatic")).to_be_visible()
    wide = httpx.get(f"{site}/collections/tales/retellings", params={"threshold": -0.2}).json()
    titles = [story["title"] for group in wide["groups"] for story in group["stories"]]
    expect(page.locator(".groups > li ol li")).to_have_text(titles)
    assert "threshold=-0.2" in page.url
    page.reload()
    expect(page.locator(".groups > li ol li")).to_have_text(titles)
    page.locator(".groups > li").first.get_by_role("button", name="on “My list”").click()
    expect(page.get_by_role("link", name=f"My list ({len(wide['groups'][0]['stories'])})")).to_be_visible()
    page.locator("#automatic").click()
    expect(page.locator(".groups > li")).to_have_count(len(answer["groups"]))

    # Pairs of stories in one group, beside pairs with the same value.
    types = {story["id"]: story["metadata"].get("atu") for group in wide["groups"] for story in group["stories"]}
    groups = [[types[story["id"]] for story in group["stories"]] for group in answer["groups"]]
    pairs = [pair for group in groups for pair in combinations(group, 2) if None not in pair]
    same = sum(first == second for first, second in pairs)
    page.locator("#column").select_option("atu")
    expect(page.locator(".agreement")).to_contain_text(
        f"Of {len(pairs)} pairs in one group whose atu is known, {same} have the same"
    )
    page.locator("#column").select_option("")
    expect(page.locator(".agreement")).to_have_count(0)


def test_agreement_with_a_column_and_the_ranking_of_versions(page, site):
    visit(page, site, "agreement")
    answer = httpx.get(f"{site}/collections/tales/agreement", params={"column": "atu"}).json()
    expect(page.locator(".finding")).to_contain_text(f"{answer['shares'][0]['share']:.0%}")
    values = page.locator(".sortable").first.locator("tbody td:first-child")
    expect(values).to_have_text([value["value"] for value in answer["values"]])
    page.get_by_role("button", name="atu", exact=True).first.click()
    expect(values).to_have_text(sorted(value["value"] for value in answer["values"]))
    surprise = answer["surprises"][0]
    page.get_by_role("link", name=f"Compare: {surprise['left']['title']}").first.click()
    heading = f"{surprise['left']['title']} beside {surprise['right']['title']}"
    expect(page.get_by_role("heading", level=1)).to_have_text(heading)

    visit(page, site, "agreement")
    ranking = httpx.get(f"{site}/collections/tales/ranking", params={"column": "atu", "control": "country"}).json()
    figures = [row for row in ranking["figures"] if row["subset"] == "all" and row["metric"] == "recall@1"]
    shown = [f"{row['value']:.0%}" for row in figures]
    expect(page.locator(".intervals li span:last-child").first).to_have_text(shown[0])
    assert page.locator(".intervals li").count() == 2 * len(figures)
    expect(page.get_by_role("cell", name="country", exact=True).first).to_be_visible()


def test_exact_words_are_shown_in_context(page, site):
    visit(page, site, "#/tales/search")
    page.locator("#mode").select_option("words")
    page.get_by_label("Exact words or a phrase").fill("glass on")
    page.keyboard.press("Enter")
    row = page.locator(".kwic tbody tr")
    expect(row).to_have_count(1)
    expect(row.locator("mark")).to_have_text("glass on")
    row.get_by_role("link", name="Cinderella").click()
    expect(page.locator("article mark")).to_have_text("glass on")

    visit(page, site, "words")
    answer = httpx.post(f"{site}/collections/tales/concordance", json={"phrase": "the"}).json()
    expect(page.locator(".finding")).to_have_text(f"{answer['total']} matches in {answer['stories']} stories")
    page.locator("#sort-lines").select_option("right")
    page.wait_for_url("**lines=right")
    page.wait_for_selector("main:not([aria-busy])")
    after = [text.strip().casefold() for text in page.locator(".kwic-after").all_inner_texts()[1:]]
    letters = [text[0] for text in after if text[:1].isalpha()]
    assert letters == sorted(letters)
    page.locator("#chip-country-Germany").click()
    expect(page.locator(".finding")).not_to_have_text(f"{answer['total']} matches in {answer['stories']} stories")
    found = page.locator(".finding").inner_text()
    assert 0 < int(found.split()[0]) < answer["total"]


def select_passage(page, start, end):
    """Select characters of a story's text as a mouse does."""
    page.evaluate(
        """([start, end]) => {
            const text = document.querySelector("article .text").firstChild;
            const range = document.createRange();
            range.setStart(text, start);
            range.setEnd(text, end);
            getSelection().removeAllRanges();
            getSelection().addRange(range);
        }""",
        [start, end],
    )


def test_notes_and_tags_are_kept_and_undone(page, site):
    visit(page, site, "story")
    page.get_by_role("button", name="Note on the story").click()
    page.get_by_label("Note", exact=True).fill("A slipper of glass.")
    page.get_by_label("Tags, separated by commas").fill("shoe, stepmother")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.locator(".notes .tag")).to_have_text(["shoe", "stepmother"])
    text = page.locator("article .text").inner_text()
    select_passage(page, 7, 16)
    page.get_by_role("button", name="Note on the selected passage").click()
    page.get_by_label("Note", exact=True).fill("Who is he?")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.locator("article mark.noted")).to_have_text(text[7:16])

    visit(page, site, "list")
    expect(page.get_by_role("heading", name="2 notes")).to_be_visible()
    page.get_by_role("button", name="stepmother").click()
    expect(page.get_by_role("heading", name="1 note")).to_be_visible()
    assert "tag=stepmother" in page.url
    page.get_by_role("button", name="Undo the last change").click()
    page.get_by_role("button", name="Undo the last change").click()
    expect(page.get_by_role("heading", name="0 notes")).to_be_visible()
    page.get_by_role("button", name="Redo").click()
    expect(page.get_by_role("heading", name="1 note")).to_be_visible()
    page.get_by_role("button", name="Undo the last change").click()
    expect(page.get_by_role("heading", name="0 notes")).to_be_visible()


def test_named_lists_are_kept_by_the_collection_and_go_into_another_project(page, browser, site):
    visit(page, site, "list")
    page.get_by_label("Name of a list").fill("shoes")
    page.get_by_role("button", name="Create a list").click()
    expect(page.get_by_role("link", name="shoes (0)")).to_be_visible()
    visit(page, site, "tree")
    for title in ("Cinderella", "Ye Xian", "Rhodopis"):
        choose(page, title)
    expect(page.get_by_role("heading", name="3 stories on “shoes”")).to_be_visible()
    page.locator("#panel-list").select_option("")
    expect(page.get_by_role("heading", name="0 stories on “My list”")).to_be_visible()
    page.locator("#panel-list").select_option("shoes")
    with page.expect_download() as saved:
        page.locator('.panel [data-format="ris"]').click()
    assert saved.value.suggested_filename == "shoes.ris"
    expect(page.get_by_role("link", name="shoes (3)")).to_be_visible()
    visit(page, site, "list")
    rows = page.locator(".sortable tbody tr td:first-child")
    expect(rows).to_have_text(["Cinderella", "Ye Xian", "Rhodopis"])
    page.get_by_role("button", name="country").click()
    expect(rows).to_have_text(["Ye Xian", "Rhodopis", "Cinderella"])  # China, Egypt, France
    page.get_by_role("button", name="country").click()
    expect(rows).to_have_text(["Cinderella", "Rhodopis", "Ye Xian"])
    expect(page.locator("th[aria-sort=descending]")).to_have_text("country")
    with page.expect_download() as saved:
        page.get_by_role("button", name="Save as a file").click()

    # Another reader, who has no tab of the first one, finds the list.
    context = browser.new_context(locale="en-US")
    other = context.new_page()
    visit(other, site, "#/tales/list?list=shoes")
    expect(other.get_by_role("link", name="shoes (3)")).to_be_visible()
    other.get_by_role("button", name="Delete this list").click()
    other.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(other.get_by_role("link", name="My list (0)")).to_be_visible()
    other.locator("#project-file").set_input_files(saved.value.path())
    expect(other.locator(".banner")).to_contain_text("added")
    other.locator("#list").select_option("shoes")
    expect(other.get_by_role("link", name="shoes (3)")).to_be_visible()
    other.get_by_label("Name of a list").fill("slippers")
    other.get_by_role("button", name="Rename this list").click()
    expect(other.get_by_role("link", name="slippers (3)")).to_be_visible()
    expect(other.locator("#list option")).to_have_text(["My list (0)", "slippers (3)"])
    other.get_by_role("button", name="Delete this list").click()
    other.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(other.get_by_role("link", name="My list (0)")).to_be_visible()
    context.close()


def test_metadata_are_edited_and_undone(page, site):
    visit(page, site, "story")
    page.get_by_role("button", name="Edit", exact=True).click()
    page.get_by_label("country", exact=True).fill("Burgundy")
    page.get_by_label("Other column, which may be new").fill("ending")
    page.get_by_label("Its value").fill("happy")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.locator("article .meta").first).to_contain_text("country Burgundy")
    expect(page.locator("article .meta").first).to_contain_text("ending happy")

    # Two stories of a list get a value at once, which is a filter and a color of the map.
    for id in ("ye_xian", "rhodopis"):
        visit(page, site, f"#/tales/story/{id}")
        page.get_by_role("button", name="Add to “My list”").click()
        expect(page.get_by_role("button", name="On “My list”")).to_be_visible()
    visit(page, site, "list")
    page.get_by_text("Write a value into all stories of the list").click()
    page.get_by_label("Other column, which may be new").fill("ending")
    page.get_by_label("Its value").fill("sad")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.locator("[data-name=ending]")).to_have_text(["sad", "sad"])
    expect(page.locator(".history li").first).to_contain_text("ending sad, written into 2 stories")
    visit(page, site, "#/tales/search?in.ending=sad")
    expect(page.get_by_role("heading", name="2 stories")).to_be_visible()
    visit(page, site, "#/tales/map?picture=tree&color=ending")
    expect(page.locator(".key").get_by_role("button", name="sad", exact=True)).to_be_visible()

    visit(page, site, "list")
    page.get_by_role("button", name="Undo the last change").click()
    expect(page.locator(".history li").first).not_to_contain_text("ending sad")
    visit(page, site, "#/tales/search?in.ending=happy")
    expect(page.get_by_role("heading", name="1 story")).to_be_visible()
    expect(page.locator("[id='chip-country-Burgundy']")).to_be_visible()


def test_a_refused_value_is_said_beside_the_form(browser, site):
    context = browser.new_context(locale="en-US")  # a refused request is an error in the console
    page = context.new_page()
    visit(page, site, "story")
    page.get_by_role("button", name="Edit", exact=True).click()
    page.get_by_label("Other column, which may be new").fill("id")
    page.get_by_label("Its value").fill("x")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_role("alert")).to_have_text("A column can't be named id. Choose another name.")
    expect(page.get_by_label("Its value")).to_have_value("x")
    context.close()


def test_a_view_follows_what_another_tab_has_changed(page, site):
    visit(page, site, "#/tales/search")
    expect(page.locator("[id='chip-country-Burgundy']")).to_have_count(0)
    change = {"kind": "edit", "ids": ["cinderella"], "values": {"country": "France"}}
    httpx.post(f"{site}/collections/tales/project/changes", json=change).raise_for_status()
    change = {"kind": "list", "name": "", "add": ["cinderella"]}
    httpx.post(f"{site}/collections/tales/project/changes", json=change).raise_for_status()
    change = {"kind": "edit", "ids": ["ye_xian", "rhodopis"], "values": {"country": "Burgundy"}}
    httpx.post(f"{site}/collections/tales/project/changes", json=change).raise_for_status()
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    expect(page.locator("[id='chip-country-Burgundy'] small")).to_have_text("2")
    expect(page.get_by_role("link", name="My list (1)")).to_be_visible()


def test_back_returns_to_the_place_with_what_was_open(page, site):
    visit(page, site, "search")
    hit = page.locator(".hit").nth(7)
    hit.get_by_role("button", name="Why this result?").click()
    expect(hit.locator(".why table")).to_be_visible()
    hit.scroll_into_view_if_needed()
    top = page.evaluate("scrollY")
    assert top > 0
    hit.locator("h2 a").click()
    page.wait_for_selector(".reading")
    page.go_back()
    expect(page.locator(".hit").nth(7).locator(".why table")).to_be_visible()
    page.wait_for_function("top => Math.abs(scrollY - top) < 3", arg=top)


def test_all_stories_are_sorted(page, site):
    visit(page, site, "#/tales/search")
    page.get_by_label("Sort by").select_option("-words")
    expect(page.locator(".cards h3").first).to_have_text(
        httpx.get(f"{site}/collections/tales/stories", params={"sort": "-words"}).json()["stories"][0]["title"]
    )
    counts = [
        int(re.search(r"\d+", text)[0]) for text in page.get_by_text(re.compile(r"^\d+ words$")).all_inner_texts()
    ]
    assert counts == sorted(counts, reverse=True)


def test_decided_pairs_of_an_earlier_session_are_changed_and_taken_back(page, site):
    pair = {"left": "cinderella", "right": "ye_xian", "decision": "unsure", "reader": "Zoe"}
    httpx.put(f"{site}/collections/tales/pairs/decisions", json=pair).raise_for_status()
    visit(page, site, "#/tales/pairs?reader=Zoe")
    page.get_by_text("1 pair decided so far").click()
    choice = page.get_by_label("Cinderella – Ye Xian")
    choice.select_option("same")
    page.reload()
    expect(page.get_by_label("Cinderella – Ye Xian")).to_have_value("same")
    expect(page.get_by_label("Cinderella – Ye Xian")).to_be_visible()  # what was open is open again
    page.get_by_label("Cinderella – Ye Xian").select_option("")
    expect(page.get_by_text("0 pairs decided so far")).to_be_visible()


def test_a_second_label_stands_beside_every_title(page, site):
    visit(page, site, "story")
    assert page.locator(".second").count() == 0
    page.locator("#label").select_option("country")
    nearest = httpx.get(f"{site}/collections/tales/stories/cinderella").json()["nearest"]
    expect(page.locator(".nearest .second")).to_have_text([near["metadata"]["country"] for near in nearest])
    visit(page, site, "compare")
    expect(page.get_by_role("heading", level=1)).to_have_text(
        "The Feather Robe (Japan) beside The Swan Maiden (Sweden)"
    )
    visit(page, site, "tree")
    expect(page.locator(".leaves").get_by_role("button", name="Cinderella (France)")).to_be_visible()
    visit(page, site, "pairs")
    expect(page.locator("#pair .second")).to_have_count(2)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("name", VIEWS)
def test_axe_finds_nothing_serious(browser, site, name, theme):
    context = browser.new_context(viewport={"width": 1200, "height": 900}, color_scheme=theme, locale="en-US")
    page = context.new_page()
    visit(page, site, name)
    if name == "search":
        page.get_by_role("button", name="Why this result?").first.click()
        page.wait_for_selector(".why table")
    violations = axe.Axe().run(page).response["violations"]
    context.close()
    assert [
        (each["id"], each["nodes"][0]["html"]) for each in violations if each["impact"] in ("serious", "critical")
    ] == []


@pytest.mark.parametrize("language", ["en-US", "de-DE"])
def test_no_view_scrolls_sideways_at_380_pixels(browser, site, language):
    context = browser.new_context(
        viewport={"width": 380, "height": 800}, locale=language, is_mobile=True, has_touch=True
    )
    page = context.new_page()
    wide = {}
    for name in VIEWS:
        visit(page, site, name)
        wide[name] = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    context.close()
    assert {name: pixels for name, pixels in wide.items() if pixels > 0} == {}


def test_a_german_page_shows_refusals_and_warnings_in_german(browser, site):
    context = browser.new_context(viewport={"width": 1200, "height": 900}, locale="de-DE")
    page = context.new_page()
    visit(page, site, "missing")
    expect(page.get_by_text("Eine Sammlung namens nothing gibt es nicht.")).to_be_visible()

    visit(page, site, "collections")
    drop(page, {"fake.pdf": "MZ", "short.txt": "A note about a boat."})
    expect(page.get_by_text("1 Geschichte hat weniger als 30 Wörter.")).to_be_visible()
    expect(page.get_by_text("Das ist keine pdf-Datei, obwohl ihr Name so endet.")).to_be_visible()

    page.get_by_label("Name der Sammlung").fill("../out")
    page.get_by_role("button", name="Starten").click()
    expect(page.get_by_role("alert")).to_contain_text("Eine Sammlung kann nicht ../out heißen.")

    visit(page, site, "collections")
    drop(page, {"fake.pdf": "MZ"})
    expect(page.get_by_role("alert")).to_contain_text("Keine der Dateien konnte gelesen werden")
    context.close()
