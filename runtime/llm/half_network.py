"""One half of a model that takes media: its language part alone, or all that turns media into features.

What belongs to the other half is left out before weights are read, so that nothing of it is ever in memory.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, NoReturn

import torch
from torch import nn
from transformers import AutoModelForMultimodalLM

from runtime.platform.errors import RuntimeFault, Unsupported

Half = Literal["language", "encoder"]


class Elsewhere(nn.Module):
    """Stands where a part would be that another process has. It tells where and in what it would compute."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("nothing", torch.empty(0), persistent=False)

    @property
    def device(self) -> torch.device:
        return self.get_buffer("nothing").device

    @property
    def dtype(self) -> torch.dtype:
        return self.get_buffer("nothing").dtype

    def forward(self, *_: Any, **__: Any) -> NoReturn:
        raise RuntimeFault("this part of the model is in another process")


def load(path: Path, config: Any, half: Half, **settings: Any) -> Any:
    """`settings` are those of transformers' `from_pretrained`."""
    whole = AutoModelForMultimodalLM._model_mapping[type(config)]
    network = _half_class(whole, half).from_pretrained(path, local_files_only=True, **settings)
    network.__class__ = whole
    if half == "language":
        _drop_own_parameters(network, _language_parts(network))
    return network


def leave_out(network: Any, half: Half) -> None:
    """Take what is not of this half out of a network."""
    _leave_out_modules(network, half)
    if half == "language":
        _drop_own_parameters(network, _language_parts(network))


def _leave_out_modules(network: Any, half: Half) -> None:
    parts = _language_parts(network)
    inside = {id(each) for part in parts for each in part.parameters()}
    if all(id(each) in inside for each in network.parameters()):
        raise Unsupported("its encoders lie inside its language part; the two cannot be in two processes")
    if half == "language":
        _replace(network, parts, lambda module: not _has_any(module, parts))
        return
    _replace(network, [], lambda module: _is_any(module, parts))
    tied = network.all_tied_weights_keys.items()
    names = {name for name, _ in network.named_parameters()}
    network.all_tied_weights_keys = {to: of for to, of in tied if {to, of} <= names}


def _half_class(whole: Any, half: Half) -> Any:
    """A class that transformers builds and fills as it does `whole`, and that is but this half of it."""

    def build(self: Any, *arguments: Any, **settings: Any) -> None:
        whole.__init__(self, *arguments, **settings)
        # Its own parameters stay until they are read: transformers would look for them.
        _leave_out_modules(self, half)

    about = {
        "__init__": build,
        "__module__": whole.__module__,
        "_keys_to_ignore_on_load_unexpected": [".*"],
    }
    return type(whole.__name__, (whole,), about)


def _language_parts(network: Any) -> list[nn.Module]:
    found = (network.get_decoder(), network.get_output_embeddings())
    return [part for part in found if isinstance(part, nn.Module)]


def _has_any(module: nn.Module, parts: list[nn.Module]) -> bool:
    return any(_is_any(inner, parts) for inner in module.modules())


def _is_any(module: nn.Module, parts: list[nn.Module]) -> bool:
    return any(module is part for part in parts)


def _replace(module: nn.Module, kept: list[nn.Module], goes: Callable[[nn.Module], bool]) -> None:
    for name, child in list(module.named_children()):
        if _is_any(child, kept):
            continue
        if goes(child):
            setattr(module, name, Elsewhere())
        else:
            _replace(child, kept, goes)


def _drop_own_parameters(module: nn.Module, parts: list[nn.Module]) -> None:
    """Those of the modules around the language part, such as the mark behind a row of an image."""
    if _is_any(module, parts):
        return
    for name, _ in list(module.named_parameters(recurse=False)):
        module.register_parameter(name, None)
    for child in module.children():
        _drop_own_parameters(child, parts)
