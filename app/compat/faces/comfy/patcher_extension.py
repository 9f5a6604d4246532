"""`comfy.patcher_extension`: names of the places where packs wrap models, and chains of wrappers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any


class CallbacksMP:
    ON_CLONE = "on_clone"
    ON_LOAD = "on_load_after"
    ON_DETACH = "on_detach_after"
    ON_CLEANUP = "on_cleanup"
    ON_PRE_RUN = "on_pre_run"
    ON_PREPARE_STATE = "on_prepare_state"
    ON_APPLY_HOOKS = "on_apply_hooks"
    ON_REGISTER_ALL_HOOK_PATCHES = "on_register_all_hook_patches"
    ON_INJECT_MODEL = "on_inject_model"
    ON_EJECT_MODEL = "on_eject_model"


class WrappersMP:
    OUTER_SAMPLE = "outer_sample"
    PREPARE_SAMPLING = "prepare_sampling"
    SAMPLER_SAMPLE = "sampler_sample"
    PREDICT_NOISE = "predict_noise"
    CALC_COND_BATCH = "calc_cond_batch"
    APPLY_MODEL = "apply_model"
    DIFFUSION_MODEL = "diffusion_model"


@dataclass(slots=True)
class PatcherInjection:
    inject: Callable[..., Any]
    eject: Callable[..., Any]


class WrapperExecutor:
    """Calls wrappers from the outside in; each gets the executor of what is inside of it."""

    def __init__(
        self, original: Callable[..., Any], class_obj: Any, wrappers: Sequence[Any], idx: int
    ) -> None:
        self.original = original
        self.class_obj = class_obj
        self.wrappers = list(wrappers)
        self.idx = idx
        self.is_last = idx == len(self.wrappers)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        inner = WrapperExecutor(self.original, self.class_obj, self.wrappers, self.idx + 1)
        return inner.execute(*args, **kwargs)

    def execute(self, *args: Any, **kwargs: Any) -> Any:
        if self.is_last:
            return self.original(*args, **kwargs)
        return self.wrappers[self.idx](self, *args, **kwargs)

    @classmethod
    def new_executor(
        cls, original: Callable[..., Any], wrappers: Sequence[Any], idx: int = 0
    ) -> WrapperExecutor:
        return cls(original, None, wrappers, idx)

    @classmethod
    def new_class_executor(
        cls, original: Callable[..., Any], class_obj: Any, wrappers: Sequence[Any], idx: int = 0
    ) -> WrapperExecutor:
        return cls(original, class_obj, wrappers, idx)


def add_wrapper(
    wrapper_type: str, wrapper: Any, options: dict[str, Any], is_model_options: bool = False
) -> None:
    add_wrapper_with_key(wrapper_type, None, wrapper, options, is_model_options)


def add_wrapper_with_key(
    wrapper_type: str, key: str | None, wrapper: Any, options: dict[str, Any], is_model_options: bool = False
) -> None:
    _add("wrappers", wrapper_type, key, wrapper, options, is_model_options)


def add_callback_with_key(
    call_type: str, key: str | None, callback: Any, options: dict[str, Any], is_model_options: bool = False
) -> None:
    _add("callbacks", call_type, key, callback, options, is_model_options)


def get_all_wrappers(wrapper_type: str, options: dict[str, Any], is_model_options: bool = False) -> list[Any]:
    if is_model_options:
        options = options.get("transformer_options", {})
    by_key = options.get("wrappers", {}).get(wrapper_type, {})
    return [wrapper for wrappers in by_key.values() for wrapper in wrappers]


def _add(
    group: str, kind: str, key: str | None, added: Any, options: dict[str, Any], is_model_options: bool
) -> None:
    if is_model_options:
        options = options.setdefault("transformer_options", {})
    options.setdefault(group, {}).setdefault(kind, {}).setdefault(key, []).append(added)
