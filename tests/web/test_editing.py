"""Drawing workflows: search, links and refusals, undo, keys, files. No model runs here."""

import json
from pathlib import Path

from PIL import Image, PngImagePlugin
from playwright.sync_api import Page, expect

from tests.web.gestures import (
    add_by_search,
    box_of,
    drag,
    empty_canvas,
    links,
    middle,
    node,
    open_example,
    open_file,
    pull_off,
    saved,
    socket,
)
from tests.web.program import example


def test_nodes_are_added_connected_refused_and_undone(page: Page) -> None:
    empty_canvas(page)
    add_by_search(page, "load checkpoint", 180, 260)
    add_by_search(page, "ksampler", 650, 260)
    loader, sampler = node(page, "Load Checkpoint"), node(page, "KSampler")

    drag(page, socket(loader, "out:0"), socket(sampler, "in:model"))
    expect(links(page)).to_have_count(1)

    drag(page, socket(loader, "out:2"), socket(sampler, "in:latent_image"))
    expect(page.locator(".notice.bad")).to_contain_text("VAE does not fit")
    expect(links(page)).to_have_count(1)

    page.keyboard.press("Control+z")
    expect(links(page)).to_have_count(0)
    page.keyboard.press("Control+z")
    expect(page.locator(".node")).to_have_count(1)
    page.keyboard.press("Control+Shift+z")
    page.keyboard.press("Control+Shift+z")
    expect(page.locator(".node")).to_have_count(2)
    expect(links(page)).to_have_count(1)


def test_a_link_dropped_on_empty_space_offers_what_fits_and_connects_it(page: Page) -> None:
    empty_canvas(page)
    add_by_search(page, "load checkpoint", 180, 260)
    page.mouse.move(*middle(socket(node(page, "Load Checkpoint"), "out:2")))
    page.mouse.down()
    page.mouse.move(700, 500, steps=6)
    page.mouse.up()
    search = page.get_by_role("combobox", name="Search nodes")
    expect(search).to_have_attribute("placeholder", "Nodes that take VAE")
    search.fill("vae decode")
    page.keyboard.press("Enter")
    expect(node(page, "VAE Decode")).to_be_visible()
    expect(links(page)).to_have_count(1)


def test_a_link_pulled_off_its_input_is_gone(page: Page) -> None:
    open_example(page, "Text to image", "text_to_image")
    before = len(example("text_to_image")["links"])
    expect(links(page)).to_have_count(before)
    pull_off(page, socket(node(page, "VAE Decode"), "in:samples"))
    expect(links(page)).to_have_count(before - 1)


def test_values_are_typed_stepped_and_kept_in_range(page: Page) -> None:
    empty_canvas(page)
    add_by_search(page, "ksampler", 500, 300)
    steps = node(page, "KSampler").get_by_label("steps", exact=True)
    steps.fill("33")
    steps.press("ArrowUp")
    expect(steps).to_have_value("34")
    steps.fill("999999")
    steps.press("Enter")
    expect(steps).to_have_value("10000")
    cfg = node(page, "KSampler").get_by_label("cfg", exact=True)
    cfg.fill("2.5")
    cfg.press("ArrowDown")
    expect(cfg).to_have_value("2.4")


def test_advanced_inputs_come_when_they_are_asked_for(page: Page, tmp_path: Path) -> None:
    empty_canvas(page)
    add_by_search(page, "generate with language model", 400, 120)
    box = node(page, "Generate with Language Model")
    expect(box.get_by_label("max tokens", exact=True)).to_be_visible()
    expect(box.get_by_label("top k", exact=True)).to_have_count(0)
    box.get_by_role("button", name="More options").click()
    expect(box.get_by_label("top k", exact=True)).to_be_visible()
    assert saved(page, "Save", tmp_path)["nodes"][0]["showAdvanced"] is True


def test_copy_paste_mute_bypass_select_all_and_delete_by_key(page: Page) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    empty_canvas(page)
    add_by_search(page, "load checkpoint", 200, 200)
    page.keyboard.press("Control+c")
    page.mouse.move(700, 400)
    page.keyboard.press("Control+v")
    expect(page.locator(".node")).to_have_count(2)
    page.keyboard.press("Control+m")
    expect(page.locator(".node.muted")).to_have_count(1)
    page.keyboard.press("Control+b")
    expect(page.locator(".node.bypassed")).to_have_count(1)
    page.keyboard.press("Control+a")
    expect(page.locator(".node.selected")).to_have_count(2)
    page.keyboard.press("Delete")
    expect(page.locator(".node")).to_have_count(0)
    page.keyboard.press("Control+z")
    expect(page.locator(".node")).to_have_count(2)


def test_a_drag_is_one_step(page: Page) -> None:
    empty_canvas(page)
    add_by_search(page, "load checkpoint", 300, 300)
    box = node(page, "Load Checkpoint")
    before = box_of(box)
    page.mouse.move(before["x"] + 80, before["y"] + 12)
    page.mouse.down()
    page.mouse.move(before["x"] + 280, before["y"] + 140, steps=10)
    page.mouse.up()
    page.wait_for_timeout(100)
    assert box_of(box)["x"] > before["x"] + 150
    page.keyboard.press("Control+z")
    page.wait_for_timeout(100)
    assert abs(box_of(box)["x"] - before["x"]) < 1


def test_a_workflow_survives_saving_and_opening(page: Page, tmp_path: Path) -> None:
    open_example(page, "Text to image", "text_to_image")
    first = saved(page, "Save", tmp_path)
    prompt = saved(page, "Export for the API", tmp_path)
    sampler = next(entry for entry in prompt.values() if entry["class_type"] == "KSampler")
    assert sampler["inputs"]["steps"] == 16
    assert isinstance(sampler["inputs"]["model"], list)

    empty_canvas(page)
    file = tmp_path / "again.json"
    file.write_text(json.dumps(first))
    open_file(page, file)
    again = saved(page, "Save", tmp_path)
    assert again == first


def test_the_workflow_in_a_picture_is_opened(page: Page, tmp_path: Path) -> None:
    open_example(page, "Text to image", "text_to_image")
    workflow = saved(page, "Save", tmp_path)
    texts = PngImagePlugin.PngInfo()
    texts.add_text("prompt", "{}")
    texts.add_text("workflow", json.dumps(workflow))
    Image.new("RGB", (8, 8)).save(tmp_path / "picture.png", pnginfo=texts)
    empty_canvas(page)
    open_file(page, tmp_path / "picture.png")
    expect(page.locator(".node")).to_have_count(len(workflow["nodes"]))


def test_a_dropped_file_is_opened(page: Page) -> None:
    empty_canvas(page)
    file = {
        "nodes": [{"id": 3, "type": "Note", "pos": [0, 0], "size": [200, 100], "widgets_values": ["hello"]}]
    }
    transfer = page.evaluate_handle(
        """(text) => {
            const transfer = new DataTransfer();
            transfer.items.add(new File([text], "note.json", { type: "application/json" }));
            return transfer;
        }""",
        json.dumps({**file, "links": [], "version": 0.4}),
    )
    page.dispatch_event(".workspace", "drop", {"dataTransfer": transfer})
    expect(page.locator(".node textarea")).to_have_value("hello")


def test_an_api_prompt_is_laid_out(page: Page, tmp_path: Path) -> None:
    file = tmp_path / "prompt.json"
    loader = {"class_type": "CheckpointLoaderSimple", "inputs": {"ckpt_name": "glyph"}}
    encode = {"class_type": "CLIPTextEncode", "inputs": {"text": "a whale", "clip": ["1", 1]}}
    file.write_text(json.dumps({"1": loader, "2": encode}))
    open_file(page, file)
    expect(page.locator(".node")).to_have_count(2)
    expect(links(page)).to_have_count(1)
    expect(page.locator(".node textarea")).to_have_value("a whale")


def test_an_unknown_node_is_shown_and_kept(page: Page, tmp_path: Path) -> None:
    unknown = {
        "id": 4,
        "type": "SomeoneElsesNode",
        "pos": [50, 60],
        "size": [240, 120],
        "properties": {"ver": "9"},
        "inputs": [{"name": "image", "type": "IMAGE", "link": None}],
        "outputs": [{"name": "IMAGE", "type": "IMAGE", "links": None}],
        "widgets_values": [1, {"deep": True}],
    }
    file = tmp_path / "unknown.json"
    file.write_text(json.dumps({"nodes": [unknown], "links": [], "version": 0.4}))
    open_file(page, file)
    expect(page.locator(".node.unknown")).to_contain_text("not installed")
    kept = saved(page, "Save", tmp_path)["nodes"][0]
    assert kept["type"] == "SomeoneElsesNode"
    assert kept["widgets_values"] == unknown["widgets_values"]
    assert kept["properties"]["ver"] == "9"


def test_a_file_without_a_workflow_changes_nothing(page: Page, tmp_path: Path) -> None:
    before = len(example("llm_to_image")["nodes"])
    for name, content in (("words.json", '{"a": 1}'), ("broken.json", "{"), ("not.png", "no picture")):
        (tmp_path / name).write_text(content)
        open_file(page, tmp_path / name)
        expect(page.locator(".notice.bad").last).to_contain_text(f"{name} holds no workflow")
    expect(page.locator(".node")).to_have_count(before)


def test_the_open_workflow_is_kept_over_a_reload(page: Page) -> None:
    empty_canvas(page)
    add_by_search(page, "save image", 400, 300)
    node(page, "Save Image").get_by_label("filename prefix").fill("kept")
    page.reload()
    expect(node(page, "Save Image").get_by_label("filename prefix")).to_have_value("kept")


def test_a_picture_is_uploaded_into_its_node(page: Page, tmp_path: Path) -> None:
    Image.new("RGB", (24, 24), (200, 80, 20)).save(tmp_path / "mine.png")
    empty_canvas(page)
    add_by_search(page, "load image", 400, 250)
    box = node(page, "Load Image")
    with page.expect_file_chooser() as chooser:
        box.get_by_role("button", name="Upload").click()
    chooser.value.set_files(tmp_path / "mine.png")
    expect(box.locator("select")).to_contain_text("mine.png")
    shown = box.locator(".image-widget img")
    page.wait_for_function("image => image.naturalWidth === 24", arg=shown.element_handle())


def test_the_theme_follows_the_system_until_it_is_chosen(page: Page) -> None:
    html = page.locator("html")
    page.emulate_media(color_scheme="dark")
    expect(html).to_have_attribute("data-theme", "dark")
    page.get_by_role("button", name="Switch to light").click()
    expect(html).to_have_attribute("data-theme", "light")
    page.reload()
    expect(html).to_have_attribute("data-theme", "light")
