"""`comfy.model_patcher`: patches of a model's options; patched models themselves are not served."""

from __future__ import annotations

from typing import Any

from app.compat.named import named

ModelPatcher, CoreModelPatcher, ModelPatcherDynamic = named(
    "comfy.model_patcher", "ModelPatcher", "CoreModelPatcher", "ModelPatcherDynamic"
)
(get_key_weight, string_to_seed) = named("comfy.model_patcher", "get_key_weight", "string_to_seed")


def create_model_options_clone(orig_model_options: dict[str, Any]) -> dict[str, Any]:
    """The dicts and lists are new, what they hold is the same."""

    def copied(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: copied(item) for key, item in value.items()}
        return list(value) if isinstance(value, list) else value

    clone: dict[str, Any] = copied(orig_model_options)
    return clone


def set_model_options_patch_replace(
    model_options: dict[str, Any],
    patch: Any,
    name: str,
    block_name: str,
    number: int,
    transformer_index: int | None = None,
) -> dict[str, Any]:
    replaced = model_options.setdefault("transformer_options", {}).setdefault("patches_replace", {})
    place = (block_name, number) if transformer_index is None else (block_name, number, transformer_index)
    replaced.setdefault(name, {})[place] = patch
    return model_options


def set_model_options_post_cfg_function(
    model_options: dict[str, Any], post_cfg_function: Any, disable_cfg1_optimization: bool = False
) -> dict[str, Any]:
    model_options.setdefault("sampler_post_cfg_function", []).append(post_cfg_function)
    if disable_cfg1_optimization:
        model_options["disable_cfg1_optimization"] = True
    return model_options
