"""What a person does with the editor, as functions of a page."""

import json
from pathlib import Path
from typing import Any

from playwright.sync_api import FloatRect, Locator, Page, expect

from tests.web.program import example

# the view glides to its place
SETTLE_MS = 500


def node(page: Page, title: str) -> Locator:
    """The box with this title."""
    return page.locator(".react-flow__node").filter(has=page.locator(f'article[aria-label="{title}"]'))


def socket(box: Locator, handle: str) -> Locator:
    """`in:name` or `out:slot` of a box."""
    return box.locator(f'.react-flow__handle[data-handleid="{handle}"]')


def menu(page: Page, name: str, item: str) -> None:
    page.get_by_role("button", name=name, exact=True).click()
    page.get_by_role("menuitem", name=item).click()


def open_example(page: Page, title: str, file: str) -> None:
    """From the menu; waits until all of it is drawn."""
    menu(page, "Examples", title)
    workflow = example(file)
    expect(page.locator(".node")).to_have_count(len(workflow["nodes"]))
    expect(links(page)).to_have_count(len(workflow["links"]))
    page.wait_for_timeout(SETTLE_MS)


def empty_canvas(page: Page) -> None:
    menu(page, "File", "New workflow")
    expect(page.locator(".node")).to_have_count(0)


def add_by_search(page: Page, query: str, x: float, y: float) -> None:
    """Double-click on the empty canvas, type, Enter."""
    before = page.locator(".node").count()
    page.mouse.dblclick(x, y)
    page.get_by_role("combobox", name="Search nodes").fill(query)
    page.keyboard.press("Enter")
    expect(page.locator(".node")).to_have_count(before + 1)


def box_of(locator: Locator) -> FloatRect:
    box = locator.bounding_box()
    assert box is not None, "not drawn"
    return box


def middle(locator: Locator) -> tuple[float, float]:
    box = box_of(locator)
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def drag(page: Page, start: Locator, end: Locator) -> None:
    page.mouse.move(*middle(start))
    page.mouse.down()
    page.mouse.move(*middle(end), steps=8)
    page.mouse.up()


def pull_off(page: Page, handle: Locator) -> None:
    """Takes a link by its input and lets it go over nothing."""
    canvas = box_of(page.locator(".canvas"))
    page.mouse.move(*middle(handle))
    page.mouse.down()
    page.mouse.move(canvas["x"] + canvas["width"] - 25, canvas["y"] + 20, steps=8)
    page.mouse.up()


def links(page: Page) -> Locator:
    return page.locator(".react-flow__edge")


def open_file(page: Page, path: Path) -> None:
    page.get_by_role("button", name="File", exact=True).click()
    with page.expect_file_chooser() as chooser:
        page.get_by_role("menuitem", name="Open…").click()
    chooser.value.set_files(path)


def saved(page: Page, item: str, folder: Path) -> dict[str, Any]:
    """What a menu item of File downloads, read as JSON."""
    page.get_by_role("button", name="File", exact=True).click()
    with page.expect_download() as download:
        page.get_by_role("menuitem", name=item).click()
    path = folder / download.value.suggested_filename
    download.value.save_as(path)
    content: dict[str, Any] = json.loads(path.read_text())
    return content
