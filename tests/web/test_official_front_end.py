"""ComfyUI's own front end against this server, where the user has installed its wheel."""

import json
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, WebSocket

from tests.cpu.server.process import Server
from tests.web.program import ROOT, example

SLOW = 300_000

pytestmark = pytest.mark.skipif(
    find_spec("comfyui_frontend_package") is None,
    reason="the wheel comfyui-frontend-package is not installed (it is GPL, so never a dependency)",
)


@pytest.fixture
def official(tmp_path: Path) -> Iterator[Server]:
    server = Server(tmp_path, "--models-directory", str(ROOT / "models"), "--front-end", "official")
    yield server
    server.stop()


@pytest.fixture
def page(browser: Browser, official: Server) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1400, "height": 900})
    page = context.new_page()
    page.set_default_timeout(60_000)
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    yield page
    context.close()
    assert errors == []


def boot(page: Page, server: Server) -> None:
    page.goto(f"http://127.0.0.1:{server.port}/")
    page.wait_for_function("window.app?.graph && document.querySelector('canvas')", timeout=SLOW)
    page.wait_for_timeout(3000)
    page.keyboard.press("Escape")


def kind(frame: str | bytes) -> str:
    return "preview" if isinstance(frame, bytes) else str(json.loads(frame)["type"])


def types(page: Page) -> list[str]:
    found: list[str] = page.evaluate("window.app.graph._nodes.map(node => node.type)")
    return sorted(found)


def test_it_boots_runs_our_example_and_opens_it_again_from_its_history(page: Page, official: Server) -> None:
    frames: list[str | bytes] = []

    def listen(socket: WebSocket) -> None:
        socket.on("framereceived", lambda frame: frames.append(frame))

    page.on("websocket", listen)
    boot(page, official)
    workflow = example("text_to_image")
    page.evaluate("workflow => window.app.loadGraphData(workflow)", workflow)
    expected = sorted(node["type"] for node in workflow["nodes"])
    page.wait_for_function("count => window.app.graph._nodes.length === count", arg=len(expected))
    assert types(page) == expected

    page.evaluate("window.app.queuePrompt(0, 1)")
    while not any(kind(frame) == "execution_success" for frame in frames):
        page.wait_for_timeout(500)
    heard = {kind(frame) for frame in frames}
    assert {"execution_start", "progress_state", "executed", "preview"} <= heard

    boot(page, official)
    page.get_by_role("button", name="Assets (a)").click()
    picture = page.locator('img[src*="/view"]').first
    picture.wait_for()
    picture.click(button="right")
    page.get_by_role("menuitem", name="Open as workflow in new tab").click()
    page.wait_for_function("count => window.app.graph._nodes.length === count", arg=len(expected))
    assert types(page) == expected
