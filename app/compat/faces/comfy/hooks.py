"""`comfy.hooks`: names only."""

from __future__ import annotations

from app.compat.named import named

(
    HookGroup,
    Hook,
    HookKeyframe,
    HookKeyframeGroup,
    EnumHookMode,
    EnumHookType,
    create_hook_lora,
    set_hooks_for_conditioning,
    set_conds_props,
    WeightHook,
    TransformerOptionsHook,
) = named(
    "comfy.hooks",
    "HookGroup",
    "Hook",
    "HookKeyframe",
    "HookKeyframeGroup",
    "EnumHookMode",
    "EnumHookType",
    "create_hook_lora",
    "set_hooks_for_conditioning",
    "set_conds_props",
    "WeightHook",
    "TransformerOptionsHook",
)
