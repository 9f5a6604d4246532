"""Files from other servers, within limits: size, time, redirects, and no addresses of private networks."""

from __future__ import annotations

import ipaddress
import socket
from urllib.parse import urljoin, urlsplit

from aiohttp import ClientError, ClientSession, ClientTimeout, StreamReader, TCPConnector
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.resolver import ThreadedResolver

from app.errors import BadRequest

MAX_BYTES = 32 << 20
TIMEOUT_S = 20.0
_MAX_REDIRECTS = 3
_REDIRECTS = frozenset({301, 302, 303, 307, 308})


async def fetch(url: str, *, allow_private: bool = False) -> bytes:
    """Raises `BadRequest` with the reason. `allow_private` is for tests and closed networks."""
    resolver = ThreadedResolver() if allow_private else PublicResolver()
    connector = TCPConnector(resolver=resolver, use_dns_cache=False)
    try:
        async with ClientSession(connector=connector, timeout=ClientTimeout(TIMEOUT_S)) as session:
            for _ in range(_MAX_REDIRECTS + 1):
                _check(url, allow_private)
                async with session.get(url, allow_redirects=False) as response:
                    if response.status in _REDIRECTS and "Location" in response.headers:
                        url = urljoin(url, response.headers["Location"])
                        continue
                    if response.status != 200:
                        raise BadRequest(f"The server of {url} answered {response.status}")
                    return await _limited(response.content, url)
    except TimeoutError:
        raise BadRequest(f"{url} did not answer within {TIMEOUT_S:.0f} s") from None
    except (ClientError, OSError, ValueError) as error:
        raise BadRequest(f"{url} cannot be fetched: {error}") from None
    raise BadRequest(f"{url} is redirected more than {_MAX_REDIRECTS} times")


async def _limited(stream: StreamReader, url: str) -> bytes:
    content = bytearray()
    async for chunk in stream.iter_chunked(1 << 16):
        content += chunk
        if len(content) > MAX_BYTES:
            raise BadRequest(f"{url} is larger than {MAX_BYTES >> 20} MB")
    return bytes(content)


def _check(url: str, allow_private: bool) -> None:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise BadRequest(f"{url[:100]} is no http or https address")
    try:
        address = ipaddress.ip_address(parts.hostname)
    except ValueError:
        return
    # a literal address asks no resolver
    if not allow_private and not is_public(str(address)):
        raise BadRequest(f"{parts.hostname} is an address of a private network")


def is_public(address: str) -> bool:
    parsed = ipaddress.ip_address(address.split("%", 1)[0])
    mapped = getattr(parsed, "ipv4_mapped", None)
    return (mapped or parsed).is_global and not parsed.is_multicast


class PublicResolver(AbstractResolver):
    """Names are resolved once and connected to as resolved, so that no second answer can lead elsewhere."""

    def __init__(self) -> None:
        self._inner = ThreadedResolver()

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        found = await self._inner.resolve(host, port, family)
        if not all(is_public(each["host"]) for each in found):
            raise BadRequest(f"{host} is an address of a private network")
        return found

    async def close(self) -> None:
        await self._inner.close()
