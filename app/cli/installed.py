"""The definitions of the nodes that are installed here, for a command without a server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from app.compat.host import Host, find_host, set_host
from app.config import Config
from app.files import Files
from app.folders import ModelFolders
from app.startup import load_nodes


def installed_definitions(config: Config) -> Mapping[str, Mapping[str, Any]]:
    files = Files(config.directories, ModelFolders(config.directories, config.extra_model_paths))
    if find_host() is None:
        set_host(Host(config, files))
    registry = load_nodes(config, files)
    return {node_id: registry.object_info(node_id, files) for node_id in registry}
