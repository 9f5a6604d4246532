"""The editor against the real server and the embedded models: run, watch, stop, come back."""

import io
import json
from itertools import pairwise
from pathlib import Path

import numpy as np
from PIL import Image
from playwright.sync_api import Page, WebSocketRoute, expect

from tests.web.gestures import menu, node, open_example, open_file, pull_off, socket
from tests.web.program import Server, example

SLOW = 300_000


def run(page: Page) -> None:
    page.get_by_role("button", name="Run", exact=True).click()


def record_texts(page: Page, title: str) -> None:
    """Keeps every text that the node shows from now on in `window.texts`."""
    page.evaluate(
        """(title) => {
            window.texts = [];
            const note = () => {
                const box = document.querySelector(`article[aria-label="${title}"] .shown-text`);
                const text = box?.textContent ?? "";
                if (text && window.texts.at(-1) !== text) window.texts.push(text);
            };
            const all = { subtree: true, childList: true, characterData: true };
            new MutationObserver(note).observe(document.body, all);
        }""",
        title,
    )


def test_the_example_runs_shows_its_work_and_is_found_after_a_reload(page: Page, server: Server) -> None:
    open_example(page, "A language model writes the prompt", "llm_to_image")
    writer, sampler, saver = (
        node(page, title) for title in ("Generate with Language Model", "KSampler", "Save Image")
    )
    run(page)

    expect(writer.locator(".shown-text")).not_to_be_empty(timeout=SLOW)
    sampler.locator("img.preview").wait_for(timeout=SLOW)
    expect(sampler.locator(".badge.running, .done, .badge")).to_be_visible()
    picture = saver.locator(".pictures img")
    picture.wait_for(timeout=SLOW)
    written = node(page, "What it wrote").locator(".shown-text").text_content()
    assert written

    source = picture.evaluate("image => image.src")
    pixels = np.asarray(Image.open(io.BytesIO(page.request.get(source).body())).convert("RGB"), dtype=float)
    assert pixels.shape == (64, 64, 3)
    assert pixels.std() > 10, "the picture is flat"
    assert len(list(server.output.glob("**/*.png"))) >= 1

    page.reload()
    past = page.locator(".past-item").first
    expect(past.locator(".past-text")).to_have_text(written)
    thumbnail = past.locator(".thumbnails img")
    thumbnail.scroll_into_view_if_needed()
    page.wait_for_function(
        "image => image.complete && image.naturalWidth > 0", arg=thumbnail.element_handle()
    )
    # the open workflow is kept too, and its nodes show again what they made
    node(page, "Save Image").locator(".pictures img").wait_for()

    menu(page, "File", "New workflow")
    past.get_by_role("button", name="Open workflow").click()
    expect(page.locator(".node")).to_have_count(len(example("llm_to_image")["nodes"]))
    expect(node(page, "Save Image").locator(".pictures img")).to_be_visible()


def test_text_grows_in_the_node_while_it_is_written(page: Page, tmp_path: Path) -> None:
    words = example("llm_to_image")
    kept = {"LLMLoader", "LLMGenerate", "TextPreview", "PrimitiveStringMultiline", "TextTemplate"}
    nodes = [entry for entry in words["nodes"] if entry["type"] in kept]
    for entry in nodes:
        if entry["type"] == "LLMGenerate":
            entry["widgets_values"][3] = 24
            entry["widgets_values"][-1] = ""
    file = tmp_path / "words.json"
    file.write_text(json.dumps({**words, "nodes": nodes}))
    open_file(page, file)
    expect(page.locator(".node")).to_have_count(len(nodes))
    record_texts(page, "Generate with Language Model")
    run(page)
    expect(node(page, "What it wrote").locator(".shown-text")).not_to_be_empty(timeout=SLOW)
    texts = page.evaluate("window.texts")
    assert len(texts) >= 3, texts
    assert all(later.startswith(earlier) for earlier, later in pairwise(texts)), texts


def test_a_running_prompt_is_interrupted(page: Page, tmp_path: Path) -> None:
    long = example("text_to_image")
    for entry in long["nodes"]:
        if entry["type"] == "KSampler":
            entry["widgets_values"][2] = 5000
    file = tmp_path / "long.json"
    file.write_text(json.dumps(long))
    open_file(page, file)
    run(page)
    node(page, "KSampler").locator("img.preview").wait_for(timeout=SLOW)
    page.get_by_role("tab", name="Queue").click()
    expect(page.locator(".job.running")).to_have_count(1)
    page.get_by_role("button", name="Interrupt", exact=True).click()
    expect(page.locator(".job")).to_have_count(0, timeout=SLOW)
    page.get_by_role("tab", name="History").click()
    expect(page.locator(".past-item.interrupted").first).to_be_visible()


def test_a_refused_prompt_says_so_on_the_node_and_its_input(page: Page) -> None:
    open_example(page, "Text to image", "text_to_image")
    pull_off(page, socket(node(page, "KSampler"), "in:model"))
    run(page)
    refused = node(page, "KSampler").locator(".socket-row.refused")
    expect(refused).to_have_count(1)
    expect(refused).to_contain_text("missing")
    expect(page.locator(".problems")).to_contain_text("Required input is missing")

    page.keyboard.press("Control+z")
    page.locator(".problems").get_by_role("button", name="Dismiss").click()
    expect(refused).to_have_count(0)


def test_a_node_that_fails_shows_its_error_and_leads_there_from_the_list(page: Page, tmp_path: Path) -> None:
    template = {"class_type": "TextTemplate", "inputs": {"template": "a {nobody} here"}}
    shown = {"class_type": "TextPreview", "inputs": {"text": ["1", 0]}}
    file = tmp_path / "failing.json"
    file.write_text(json.dumps({"1": template, "2": shown}))
    open_file(page, file)
    expect(page.locator(".node")).to_have_count(2)
    run(page)
    failed = page.locator(".node.has-error")
    expect(failed.locator(".node-trouble")).to_contain_text("nobody", timeout=SLOW)
    problems = page.locator(".problems")
    problems.get_by_role("button", name="nobody").click()
    expect(page.locator(".node.selected.has-error")).to_have_count(1)
    # running on is possible at once, and forgets the failure
    failed.locator("textarea").fill("all well")
    run(page)
    expect(page.locator(".shown-text")).to_have_text("all well", timeout=SLOW)
    expect(problems).to_have_count(0)


def test_a_lost_connection_comes_back_and_misses_nothing(page: Page, tmp_path: Path) -> None:
    sockets: list[WebSocketRoute] = []

    def through(route: WebSocketRoute) -> None:
        sockets.append(route)
        route.connect_to_server()

    page.route_web_socket("**/ws?**", through)
    page.reload()
    page.locator(".node").first.wait_for()
    file = tmp_path / "words.json"
    text = {"class_type": "TextTemplate", "inputs": {"template": "came while nobody listened"}}
    shown = {"class_type": "TextPreview", "inputs": {"text": ["1", 0]}}
    file.write_text(json.dumps({"1": text, "2": shown}))
    open_file(page, file)
    expect(page.locator(".node")).to_have_count(2)
    sockets[0].close()
    expect(page.locator(".connection-lost")).to_be_visible()
    run(page)
    expect(page.locator(".connection-lost")).to_have_count(0)
    expect(page.locator(".shown-text")).to_have_text("came while nobody listened", timeout=SLOW)
    assert len(sockets) == 2
