"""`comfy_api.latest.io`: everything that a schema of the third style is written with."""

from __future__ import annotations

from typing import Any

from app.compat.v3 import sockets
from app.compat.v3.dynamic import Autogrow, DynamicCombo, MatchType, MultiType
from app.compat.v3.inputs import Input, Output, WidgetInput
from app.compat.v3.replace import NodeReplace
from app.compat.v3.schema import ComfyNode, Hidden, HiddenHolder, NodeOutput, Schema
from app.compat.v3.sockets import ComfyTypeI, ComfyTypeIO, Custom, comfytype
from app.compat.v3.widgets import (
    Boolean,
    Color,
    Combo,
    ControlAfterGenerate,
    Float,
    FolderType,
    Int,
    MultiCombo,
    NumberDisplay,
    RemoteOptions,
    String,
    UploadType,
)

__all__ = [
    "Autogrow", "Boolean", "Color", "Combo", "ComfyNode", "ComfyTypeI", "ComfyTypeIO", "ControlAfterGenerate",
    "Custom", "DynamicCombo", "Float", "FolderType", "Hidden", "HiddenHolder", "Input", "Int", "MatchType",
    "MultiCombo", "MultiType", "NodeOutput", "NodeReplace", "NumberDisplay", "Output",
    "RemoteOptions", "Schema", "String", "UploadType", "WidgetInput", "comfytype",
]  # fmt: skip

for _name in sockets.PLAIN:
    globals()[_name] = getattr(sockets, _name)


def __getattr__(name: str) -> Any:
    raise AttributeError(
        f"Treadle does not serve comfy_api.latest.io.{name}; docs/compat.md lists what it serves"
    )
