"""The program as a process, and Chromium beside it. A page that reports an error fails its test."""

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Error, Page, expect, sync_playwright

from tests.web.program import ROOT, Server, example

CHROMIUM = Path("/usr/bin/chromium")
CHROMIUM_FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
START_S = 180


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Models run in some of these on whatever machine this is, so all have more than the usual minute."""
    for item in items:
        if Path(item.fspath).parent == Path(__file__).parent:
            item.add_marker(pytest.mark.timeout(600))


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_until_ready(process: subprocess.Popen[bytes], url: str, log: Path) -> None:
    """The route of the definitions waits for the nodes and the runtimes."""
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline:
        if process.poll() is not None:
            pytest.fail(f"the server ended with {process.returncode}:\n{log.read_text()}")
        try:
            with urllib.request.urlopen(f"{url}/api/object_info", timeout=START_S):
                return
        except urllib.error.HTTPError as error:
            with error:
                pytest.fail(f"{error}: {error.read().decode()}\n{log.read_text()}")
        except OSError:
            time.sleep(0.2)
    pytest.fail(f"the server was not ready within {START_S} s:\n{log.read_text()}")


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    if not (ROOT / "web/dist/index.html").exists():
        pytest.fail("the editor is not built: run `make web`")
    folder, port = tmp_path_factory.mktemp("server"), free_port()
    names = ("output", "input", "temp", "user")
    flags = [part for name in names for part in (f"--{name}-directory", str(folder / name))]
    for name in names:
        (folder / name).mkdir()
    log = folder / "log.txt"
    with log.open("wb") as written:
        process = subprocess.Popen(
            [sys.executable, "main.py", "--port", str(port), *flags],
            cwd=ROOT,
            stdout=written,
            stderr=subprocess.STDOUT,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        try:
            url = f"http://127.0.0.1:{port}"
            wait_until_ready(process, url, log)
            yield Server(url, folder / "output")
        finally:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    path = str(CHROMIUM) if CHROMIUM.exists() else None
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=CHROMIUM_FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def page(browser: Browser, server: Server) -> Iterator[Page]:
    """A first visit: an empty browser on the editor, with the nodes of the first example drawn."""
    context = browser.new_context(viewport={"width": 1400, "height": 900}, accept_downloads=True)
    page = context.new_page()
    page.set_default_timeout(30_000)
    errors: list[str] = []

    def on_console(message: ConsoleMessage) -> None:
        # a refused prompt is a 400, which Chromium itself writes down
        if message.type == "error" and "the server responded with a status of 400" not in message.text:
            errors.append(message.text)

    def on_error(error: Error) -> None:
        errors.append(str(error))

    page.on("console", on_console)
    page.on("pageerror", on_error)
    page.goto(server.url)
    expect(page.locator(".node")).to_have_count(len(example("llm_to_image")["nodes"]), timeout=60_000)
    yield page
    context.close()
    assert errors == []
