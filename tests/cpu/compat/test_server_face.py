"""What packs do with PromptServer.instance, seen from outside."""

from __future__ import annotations

import asyncio

from tests.cpu.compat.conftest import Serve
from tests.cpu.compat.history import shown
from tests.cpu.server.talk import Listener, graph, post

EMPTY = "NODE_CLASS_MAPPINGS = {}\n"

ROUTES = """
from aiohttp import web
from server import PromptServer
routes = PromptServer.instance.routes

@routes.get("/mine/{name}")
async def mine(request):
    return web.json_response({"name": request.match_info["name"], "q": request.query.get("q")})

@routes.post("/mine/echo")
async def echo(request):
    return web.json_response(await request.json())

@routes.get("/mine-fails")
async def fails(request):
    raise RuntimeError("the pack's own fault")

@routes.get("/mine-exits")
async def exits(request):
    raise SystemExit(1)

@routes.get("/prompt")
async def taken(request):
    return web.json_response({"stolen": True})

async def added(request):
    return web.Response(text="added")

PromptServer.instance.app.add_routes([web.get("/added", added)])
"""


async def test_routes_of_packs_answer_plain_and_below_api_and_take_none_of_the_servers(serve: Serve) -> None:
    client = await serve({"routes.py": ROUTES + EMPTY})
    for path in ("/mine/a%20b?q=1", "/api/mine/a%20b?q=1"):
        assert await (await client.get(path)).json() == {"name": "a b", "q": "1"}
    answer = await client.post("/api/mine/echo", json={"x": [1]})
    assert await answer.json() == {"x": [1]}
    assert await (await client.get("/added")).text() == "added"
    assert "exec_info" in await (await client.get("/prompt")).json()


async def test_what_no_pack_answers_is_refused_as_before(serve: Serve) -> None:
    client = await serve({"routes.py": ROUTES + EMPTY})
    assert (await client.get("/nobody/home")).status == 404
    assert (await client.delete("/mine/a")).status in (404, 405)
    assert (await client.get("/mine-fails")).status == 500
    assert (await client.get("/mine-exits")).status == 500
    assert (await client.get("/mine/a")).status == 200


ASKS = """
from aiohttp import web
from server import PromptServer

@web.middleware
async def asks(request, handler):
    if request.headers.get("Secret") == "leave":
        raise SystemExit(1)
    if request.headers.get("Secret") != "warp":
        raise web.HTTPUnauthorized(text="who are you?")
    response = await handler(request)
    response.headers["Seen"] = request.match_info.get("name", "") + request.path
    return response

@PromptServer.instance.routes.get("/mine/{name}")
async def mine(request):
    return web.Response(text=request.match_info["name"])

PromptServer.instance.app.middlewares.append(asks)
"""


async def test_a_middleware_of_a_pack_can_keep_strangers_out(serve: Serve) -> None:
    client = await serve({"other.py": EMPTY})
    assert (await client.get("/prompt")).status == 200
    client = await serve({"asks.py": ASKS + EMPTY}, {"Secret": "warp"})
    for path in ("/prompt", "/api/object_info", "/mine/me", "/ws"):
        assert (await client.get(path)).status == 401, path
    known = {"Secret": "warp"}
    assert (await client.get("/prompt", headers=known)).headers["Seen"] == "/prompt"
    assert await (await client.get("/mine/me", headers=known)).text() == "me"
    assert (await client.get("/prompt", headers={"Secret": "leave"})).status == 500


async def test_what_became_of_each_pack_is_told_with_its_traceback(serve: Serve) -> None:
    refused = "class Odd:\n    FUNCTION = 'run'\nNODE_CLASS_MAPPINGS = {'Odd': Odd}\n"
    client = await serve({"good.py": BAD, "breaks.py": "import comfy.ldm.secret\n", "odd.py": refused})
    packs = {pack["name"]: pack for pack in await (await client.get("/api/packs")).json()}
    assert (packs["good"]["nodes"], packs["good"]["error"]) == (["Bad"], None)
    assert "breaks.py" in packs["breaks"]["error"]
    assert "comfy.ldm.secret" in packs["breaks"]["error"]
    assert list(packs["odd"]["refused"]) == ["Odd"]


async def test_scripts_of_packs_are_listed_and_served(serve: Serve) -> None:
    client = await serve({"page/__init__.py": "WEB_DIRECTORY = 'js'\n" + EMPTY, "page/js/deep/a.js": "let x"})
    assert await (await client.get("/extensions")).json() == ["/extensions/page/deep/a.js"]
    assert await (await client.get("/extensions/page/deep/a.js")).text() == "let x"


TELLS = """
from server import PromptServer
import asyncio

class Tells:
    @classmethod
    def INPUT_TYPES(cls):
        return {"required": {"text": ("STRING", {})}, "hidden": {"id": "UNIQUE_ID"}}
    RETURN_TYPES = ()
    FUNCTION = "run"
    OUTPUT_NODE = True
    def run(self, text, id):
        server = PromptServer.instance
        assert asyncio.iscoroutinefunction(server.send) and server.loop.is_running()
        assert (server.last_node_id, server.prompt_queue.get_tasks_remaining()) == (id, 1)
        server.send_sync("my-event", {"text": text}, server.client_id)
        server.send_progress_text("half", id, server.client_id)
        return {}

def louder(body):
    for node in body["prompt"].values():
        node["inputs"]["text"] += "!"
    return body

def fails(body):
    raise ValueError("no")

PromptServer.instance.add_on_prompt_handler(louder)
def exits(body):
    raise SystemExit(1)

PromptServer.instance.add_on_prompt_handler(fails)
PromptServer.instance.add_on_prompt_handler(exits)
PromptServer.instance.add_on_prompt_handler(lambda body: None)
NODE_CLASS_MAPPINGS = {"Tells": Tells}
"""


async def test_events_of_packs_reach_their_client_and_prompts_pass_their_handlers(serve: Serve) -> None:
    client = await serve({"tells.py": TELLS})
    mine = Listener(await client.ws_connect("/ws", params={"clientId": "me"}))
    other = Listener(await client.ws_connect("/ws", params={"clientId": "other"}))
    status, answer = await post(client, graph(("Tells", {"text": "hi"})), client_id="me")
    assert status == 200, answer
    messages = await mine.until_end(answer["prompt_id"])
    assert ("my-event", {"text": "hi!"}) in messages
    assert ("binary", b"\0\0\0\3" + b"\0\0\0\x011half") in messages
    assert "execution_success" in [kind for kind, _ in messages]
    for _ in range(3):
        assert (await other.message())[0] == "status"


BAD = """
import sys, threading, time

class Bad:
    @classmethod
    def INPUT_TYPES(cls):
        return {"required": {"how": ("STRING", {})}}
    RETURN_TYPES = ()
    FUNCTION = "run"
    OUTPUT_NODE = True
    async def run(self, how):
        print("noise from a pack")
        if how == "block":
            time.sleep(1.5)
        elif how == "exit":
            sys.exit(1)
        return {}

NODE_CLASS_MAPPINGS = {"Bad": Bad}
"""


async def test_a_pack_that_blocks_or_exits_leaves_the_server_answering(serve: Serve) -> None:
    client = await serve({"bad.py": BAD, "worse.py": "raise SystemExit(4)"})
    status, blocked = await post(client, graph(("Bad", {"how": "block"})))
    assert status == 200
    await asyncio.sleep(0.2)
    for _ in range(5):
        async with asyncio.timeout(0.5):
            assert (await client.get("/prompt")).status == 200
    status, left = await post(client, graph(("Bad", {"how": "exit"})))
    history = await shown(client, left["prompt_id"])
    assert history["status"]["status_str"] == "error"
    error = dict(history["status"]["messages"])["execution_error"]
    assert "SystemExit" in error["exception_message"]
    assert "bad.py" in "".join(error["traceback"])
    assert (await shown(client, blocked["prompt_id"]))["status"]["status_str"] == "success"


REPLACES = """
from comfy_api.latest import ComfyAPI, ComfyExtension, io, ui

class Newer(io.ComfyNode):
    @classmethod
    def define_schema(cls):
        return io.Schema("Newer", inputs=[io.String.Input("text")], outputs=[], is_output_node=True)

    @classmethod
    def execute(cls, text):
        return io.NodeOutput(ui=ui.PreviewText(text))

class Extension(ComfyExtension):
    async def on_load(self):
        mapping = [{"new_id": "text", "old_id": "words"}]
        await ComfyAPI().node_replacement.register(io.NodeReplace("Newer", "Older", input_mapping=mapping))

    async def get_node_list(self):
        return [Newer]

def comfy_entrypoint():
    return Extension()
"""


WORSE = """
class Once:
    calls = 0
    @classmethod
    def INPUT_TYPES(cls):
        cls.calls += 1
        if cls.calls > 2:
            raise SystemExit(5)
        return {"required": {}}
    RETURN_TYPES = ()
    FUNCTION = "run"
    OUTPUT_NODE = True
    def run(self):
        return {}

class Checks(Once):
    @classmethod
    def INPUT_TYPES(cls):
        return {"required": {"x": ("INT", {})}}
    @classmethod
    async def VALIDATE_INPUTS(cls, x):
        raise SystemExit(6)

NODE_CLASS_MAPPINGS = {"Once": Once, "Checks": Checks}
"""


async def test_declarations_and_checks_that_exit_refuse_their_prompt_and_nothing_else(serve: Serve) -> None:
    client = await serve({"worse.py": WORSE})
    assert "Once" not in await (await client.get("/object_info")).json()
    status, answer = await post(client, graph(("Once", {})))
    assert status == 400
    assert "SystemExit" in answer["error"]["details"] + answer["error"]["message"]
    status, answer = await post(client, graph(("Checks", {"x": 1})))
    assert status == 400
    assert answer["node_errors"]["1"]["errors"][0]["extra_info"]["exception_type"] == "SystemExit"
    assert (await client.get("/prompt")).status == 200


async def test_a_prompt_for_a_class_that_is_gone_runs_by_its_replacement(serve: Serve) -> None:
    client = await serve({"newer.py": REPLACES})
    status, answer = await post(client, graph(("Older", {"words": "still here"})))
    assert status == 200, answer
    row = await shown(client, answer["prompt_id"])
    assert row["outputs"]["1"]["text"] == ["still here"]
