"""Images in chats, by every way in which a client may name one, over a tiny random LLaVA."""

from __future__ import annotations

import base64
import io
from collections.abc import AsyncIterator, Callable
from typing import Any

import numpy as np
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from openai import AsyncOpenAI, BadRequestError
from PIL import Image

from app import remote
from app.config import Config, Directories
from app.server import build_app

Client = AsyncOpenAI
PROMPT = "What is this?"


def png(seed: int = 1, mode: str = "RGB") -> bytes:
    numbers = np.random.default_rng(seed).integers(0, 256, (20, 24, len(mode)), dtype=np.uint8)
    target = io.BytesIO()
    Image.fromarray(numbers, mode).save(target, "PNG")
    return target.getvalue()


def data_uri(content: bytes, kind: str = "image/png") -> str:
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"


def image_url(url: str) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": url}}


async def ask(client: Client, *parts: dict[str, Any], model: str = "llava", **more: Any) -> Any:
    content = [*parts, {"type": "text", "text": PROMPT}]
    messages: Any = [{"role": "user", "content": content}]
    return await client.chat.completions.create(
        model=model, messages=messages, max_tokens=8, temperature=0, **more
    )


async def text_of(client: Client, *parts: dict[str, Any]) -> str:
    return (await ask(client, *parts)).choices[0].message.content


async def test_an_image_is_seen_however_it_comes(client: Client, server: TestServer) -> None:
    content = png()
    form = {"image": io.BytesIO(content)}
    async with client._client as http:
        uploaded = await http.post(
            str(server.make_url("/upload/image")), files={"image": ("seen.png", form["image"], "image/png")}
        )
        assert uploaded.status_code == 200, uploaded.text
        ways = [
            image_url(data_uri(content)),
            {"type": "image_url", "image_url": data_uri(content)},
            {"type": "image_data", "image_data": base64.b64encode(content).decode()},
            image_url("/view?filename=seen.png&type=input"),
        ]
        answers = {await text_of(client, way) for way in ways}
        assert len(answers) == 1, answers
        assert answers != {await text_of(client, image_url(data_uri(png(2))))}


async def test_several_images_count_in_their_order(client: Client) -> None:
    first, second = image_url(data_uri(png(1))), image_url(data_uri(png(2)))
    one = await ask(client, first)
    both = await ask(client, first, second)
    assert both.usage.prompt_tokens > one.usage.prompt_tokens
    assert both.choices[0].message.content != (await text_of(client, second, first))


async def test_a_stream_with_an_image_equals_the_answer(client: Client) -> None:
    part = image_url(data_uri(png(3)))
    stream = await ask(client, part, stream=True)
    pieces = [chunk.choices[0].delta.content or "" async for chunk in stream if chunk.choices]
    assert "".join(pieces) == await text_of(client, part)


async def test_the_second_question_about_an_image_reuses_its_pages(client: Client) -> None:
    part = image_url(data_uri(png(4)))
    await ask(client, part)
    again = await ask(client, part)
    assert again.usage.prompt_tokens_details.cached_tokens >= 16


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("http://localhost/x.png", "--allow-remote-media"),
        ("data:image/png;base64,@@@", "base64"),
        ("data:image/png", "comma"),
        ("just some text!", "base64"),
        (data_uri(b"no picture"), "not a picture"),
        ("/view?filename=missing.png", "no file missing.png"),
        ("/view?filename=../x.png", "plain file name"),
    ],
)
async def test_what_is_no_image_is_refused_with_the_reason(client: Client, url: str, says: str) -> None:
    with pytest.raises(Exception) as caught:
        await ask(client, image_url(url))
    assert caught.value.status_code in (400, 404)  # type: ignore[attr-defined]
    assert says in str(caught.value)


async def test_a_model_without_eyes_says_so(client: Client) -> None:
    with pytest.raises(BadRequestError, match="takes text only"):
        await ask(client, image_url(data_uri(png())), model="tiny")


async def test_an_image_model_says_that_it_hears_nothing(client: Client) -> None:
    silence = base64.b64encode(_wav()).decode()
    with pytest.raises(BadRequestError, match="takes no audio"):
        await ask(client, {"type": "input_audio", "input_audio": {"data": silence, "format": "wav"}})


def _wav() -> bytes:
    import wave

    target = io.BytesIO()
    with wave.open(target, "wb") as writer:
        writer.setnchannels(2)
        writer.setsampwidth(2)
        writer.setframerate(8000)
        writer.writeframes(b"\0\0\0\0" * 800)
    return target.getvalue()


# -- other servers -------------------------------------------------------------------------------------------


@pytest.fixture
async def elsewhere() -> AsyncIterator[TestServer]:
    async def picture(_: web.Request) -> web.Response:
        return web.Response(body=png(), content_type="image/png")

    async def large(_: web.Request) -> web.Response:
        return web.Response(body=bytes(remote.MAX_BYTES + 1))

    async def around(request: web.Request) -> web.Response:
        raise web.HTTPFound(f"/around?{int(request.query_string or 0) + 1}")

    app = web.Application()
    app.add_routes([web.get("/p.png", picture), web.get("/large", large), web.get("/around", around)])
    async with TestServer(app) as opened:
        yield opened


async def test_a_public_fetch_reaches_no_private_address(elsewhere: TestServer) -> None:
    for url in (str(elsewhere.make_url("/p.png")), f"http://localhost:{elsewhere.port}/p.png"):
        with pytest.raises(Exception, match="private network"):
            await remote.fetch(url)


async def test_fetching_is_bounded(elsewhere: TestServer, monkeypatch: pytest.MonkeyPatch) -> None:
    def url(path: str) -> str:
        return str(elsewhere.make_url(path))

    assert await remote.fetch(url("/p.png"), allow_private=True) == png()
    for path, says in (("/large", "larger than"), ("/around", "redirected"), ("/none", "answered 404")):
        with pytest.raises(Exception, match=says):
            await remote.fetch(url(path), allow_private=True)
    with pytest.raises(Exception, match="no http"):
        await remote.fetch("file:///etc/passwd", allow_private=True)


@pytest.mark.parametrize(
    "address", ["127.0.0.1", "10.1.2.3", "::1", "169.254.169.254", "::ffff:10.0.0.1", "0.0.0.0"]
)
def test_private_addresses_are_known(address: str) -> None:
    assert not remote.is_public(address)


async def test_with_the_flag_an_address_is_fetched(
    elsewhere: TestServer, engine: Any, tmp_path: Any, studio_of: Callable[..., Any]
) -> None:
    config = Config(directories=Directories.below(tmp_path), remote_media="any")
    async with TestServer(build_app(config, studio_of)) as server:
        async with AsyncOpenAI(base_url=str(server.make_url("/v1")), api_key="none", max_retries=0) as client:
            fetched = await text_of(client, image_url(str(elsewhere.make_url("/p.png"))))
            assert fetched == await text_of(client, image_url(data_uri(png())))
