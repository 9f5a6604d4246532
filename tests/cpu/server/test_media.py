import asyncio
import base64
import io
import json
from typing import Any

import pytest
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from app.config import Config
from tests.cpu.server.talk import Client, png


async def upload(
    client: Client, name: str, content: bytes, route: str = "/upload/image", **fields: str
) -> Any:
    """The body is written by hand, because well-behaved clients cut folders off a file's name."""
    parts = [
        f'--B\r\nContent-Disposition: form-data; name="{key}"\r\n\r\n{value}' for key, value in fields.items()
    ]
    parts.append(f'--B\r\nContent-Disposition: form-data; name="image"; filename="{name}"\r\n\r\n')
    body = "\r\n".join(parts).encode() + content + b"\r\n--B--\r\n"
    headers = {"Content-Type": "multipart/form-data; boundary=B"}
    answer = await client.post(route, data=body, headers=headers)
    return answer.status, await answer.json()


async def test_an_upload_can_be_viewed(client: Client) -> None:
    content = png()
    assert await upload(client, "a.png", content) == (
        200,
        {"name": "a.png", "subfolder": "", "type": "input"},
    )
    answer = await client.get("/view?filename=a.png&type=input")
    assert (answer.status, answer.content_type, await answer.read()) == (200, "image/png", content)
    assert answer.headers["Content-Disposition"] == 'filename="a.png"'
    annotated = await client.get("/api/view", params={"filename": "a.png [input]"})
    assert await annotated.read() == content


async def test_equal_content_keeps_its_name_and_other_content_gets_a_number(client: Client) -> None:
    names = []
    for color in ((1, 2, 3), (1, 2, 3), (4, 5, 6), (7, 8, 9)):
        names.append((await upload(client, "a.png", png(color), subfolder="x/y"))[1]["name"])
    assert names == ["a.png", "a.png", "a (1).png", "a (2).png"]
    replaced = await upload(client, "a.png", png((9, 9, 9)), subfolder="x/y", overwrite="true")
    assert replaced[1] == {"name": "a.png", "subfolder": "x/y", "type": "input"}
    answer = await client.get("/view?filename=a.png&type=input&subfolder=x/y")
    assert await answer.read() == png((9, 9, 9))


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("../a.png", {}),
        ("a.png", {"subfolder": "../.."}),
        ("a.png", {"subfolder": "/tmp"}),
        ("a.png", {"type": "models"}),
        ("..", {}),
    ],
)
async def test_an_upload_stays_in_its_folder(client: Client, name: str, fields: dict[str, str]) -> None:
    status, answer = await upload(client, name, png(), **fields)
    assert status == 400
    assert answer["error"]["message"]


async def test_an_upload_without_a_file_is_refused(client: Client) -> None:
    assert (await client.post("/upload/image", data={"type": "input"})).status == 400
    assert (await client.post("/upload/image", data=b"nothing")).status == 400


async def test_a_body_over_the_limit_is_413(config: Config, client: Client) -> None:
    client.app._client_max_size = 1000
    status, answer = await upload(client, "a.bin", b"x" * 5000)
    assert (status, answer["error"]["type"]) == (413, "too_large")


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ({}, 404),
        ({"filename": "absent.png"}, 404),
        ({"filename": ""}, 400),
        ({"filename": "a.png", "type": "models"}, 400),
        ({"filename": "../a.png"}, 400),
        ({"filename": "/etc/passwd"}, 400),
        ({"filename": "passwd", "subfolder": "/etc"}, 403),
        ({"filename": "a.png", "subfolder": "../.."}, 403),
        ({"filename": "a\0.png"}, 400),
    ],
)
async def test_what_cannot_be_viewed_has_its_status(
    client: Client, query: dict[str, str], status: int
) -> None:
    assert (await client.get("/view", params=query)).status == status


async def test_previews_and_channels_are_made_on_the_way(client: Client) -> None:
    await upload(client, "a.png", png((200, 100, 50, 128)))

    async def seen(**query: str) -> tuple[str, Image.Image]:
        answer = await client.get("/view", params={"filename": "a.png", "type": "input", **query})
        assert answer.status == 200
        return answer.content_type, Image.open(io.BytesIO(await answer.read()))

    kind, image = await seen(preview="jpeg;80")
    assert (kind, image.format, image.mode) == ("image/jpeg", "JPEG", "RGB")
    assert (await seen(preview="webp"))[0] == "image/webp"
    assert (await seen(preview="nonsense;900"))[0] == "image/webp"
    assert (await seen(channel="rgb"))[1].getpixel((0, 0)) == (200, 100, 50)
    assert (await seen(channel="a"))[1].getchannel("A").getpixel((0, 0)) == 128


async def test_a_preview_of_what_is_no_picture_is_refused(client: Client) -> None:
    await upload(client, "a.png", b"no picture")
    answer = await client.get("/view?filename=a.png&type=input&preview=webp")
    assert answer.status == 400


@pytest.mark.parametrize("name", ["a.html", "a.svg", "a.js", "a.css", "a.xml", "a.xhtml"])
async def test_scripts_are_handed_out_as_downloads(client: Client, name: str) -> None:
    await upload(client, name, b"<script>alert(1)</script>")
    answer = await client.get(f"/view?filename={name}&type=input")
    assert answer.content_type == "application/octet-stream"
    assert answer.headers["Content-Disposition"].startswith("attachment")
    assert answer.headers["X-Content-Type-Options"] == "nosniff"


async def test_an_svg_may_be_shown_inside_a_page(client: Client) -> None:
    await upload(client, "a.svg", b"<svg/>")
    url = "/view?filename=a.svg&type=input"
    answer = await client.get(url, headers={"Sec-Fetch-Dest": "image"})
    assert (answer.content_type, answer.headers["Vary"]) == ("image/svg+xml", "Sec-Fetch-Dest")


async def test_a_mask_is_put_on_its_original_whose_texts_stay(client: Client) -> None:
    chunks = PngInfo()
    chunks.add_text("workflow", '{"id": 1}')
    target = io.BytesIO()
    Image.new("RGB", (6, 4), (10, 20, 30)).save(target, "PNG", pnginfo=chunks)
    await upload(client, "original.png", target.getvalue())
    reference = json.dumps({"filename": "original.png", "type": "input"})
    mask = png((0, 0, 0, 77))
    status, stored = await upload(client, "masked.png", mask, "/upload/mask", original_ref=reference)
    assert status == 200
    answer = await client.get("/view", params={"filename": stored["name"], "type": "input"})
    masked = Image.open(io.BytesIO(await answer.read()))
    assert masked.getpixel((0, 0)) == (10, 20, 30, 77)
    assert masked.text == {"workflow": '{"id": 1}'}  # type: ignore[attr-defined]


@pytest.mark.parametrize("reference", ["", "[]", "{}", '{"filename": "../x"}', '{"filename": "absent.png"}'])
async def test_a_mask_without_its_original_is_refused(client: Client, reference: str) -> None:
    status, _ = await upload(client, "m.png", png((0, 0, 0, 1)), "/upload/mask", original_ref=reference)
    assert status in (400, 404)


async def test_a_model_shows_the_picture_beside_it_or_inside_it(client: Client, config: Config) -> None:
    loras = config.directories.models / "loras" / "styles"
    cover = base64.b64encode(png((1, 2, 3))).decode()
    header = json.dumps({"__metadata__": {"ssmd_cover_images": json.dumps([cover])}}).encode()
    files = {
        "beside.safetensors": b"",
        "beside.preview.png": png((9, 9, 9), (8, 8)),
        "inside.safetensors": len(header).to_bytes(8, "little") + header,
        "bare.safetensors": (2).to_bytes(8, "little") + b"{}",
    }

    def write() -> None:
        loras.mkdir(parents=True)
        for name, content in files.items():
            (loras / name).write_bytes(content)

    await asyncio.to_thread(write)
    base = "/api/experiment/models/preview/loras/0/styles"
    for name, size in (("beside", (8, 8)), ("inside", (6, 4))):
        answer = await client.get(f"{base}/{name}.safetensors")
        assert (answer.status, answer.content_type) == (200, "image/webp")
        assert Image.open(io.BytesIO(await answer.read())).size == size
    for absent in (
        f"{base}/bare.safetensors",
        f"{base}/none.safetensors",
        "/experiment/models/preview/no/0/a",
    ):
        assert (await client.get(absent)).status == 404
    assert (await client.get("/experiment/models/preview/loras/7/a")).status == 404
    assert (await client.get("/experiment/models/preview/loras/0/..%2F..%2Fa.png")).status == 403
