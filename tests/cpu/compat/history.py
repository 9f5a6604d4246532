"""Waits for a prompt's history row."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.cpu.server.talk import Client


async def shown(client: Client, prompt_id: str) -> dict[str, Any]:
    for _ in range(200):
        found = await (await client.get(f"/history/{prompt_id}")).json()
        if found:
            row: dict[str, Any] = found[prompt_id]
            return row
        await asyncio.sleep(0.05)
    raise AssertionError(f"{prompt_id} never ended")
