"""The names that single-file checkpoints use, as the inverse of what diffusers' converters do to them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import torch

Tensors = dict[str, torch.Tensor]

_RESNET = {
    "norm1": "in_layers.0",
    "conv1": "in_layers.2",
    "time_emb_proj": "emb_layers.1",
    "norm2": "out_layers.0",
    "conv2": "out_layers.3",
    "conv_shortcut": "skip_connection",
}
_UNET = {
    "conv_in": "input_blocks.0.0",
    "time_embedding.linear_1": "time_embed.0",
    "time_embedding.linear_2": "time_embed.2",
    "add_embedding.linear_1": "label_emb.0.0",
    "add_embedding.linear_2": "label_emb.0.2",
    "conv_norm_out": "out.0",
    "conv_out": "out.2",
    "controlnet_cond_embedding.conv_in": "input_hint_block.0",
    "controlnet_cond_embedding.conv_out": "input_hint_block.14",
    "controlnet_mid_block": "middle_block_out.0",
}


def unet(state: Mapping[str, torch.Tensor], layers: int) -> Tensors:
    """UNet2DConditionModel or ControlNetModel, with `layers` residual blocks a level."""
    return {_unet_name(name, layers, state): tensor for name, tensor in state.items()}


def _unet_name(name: str, layers: int, state: Mapping[str, torch.Tensor]) -> str:
    stem, _, kind = name.rpartition(".")
    if stem in _UNET:
        return f"{_UNET[stem]}.{kind}"
    rules = (
        (
            r"down_blocks\.(\d+)\.resnets\.(\d+)\.(.*)",
            lambda i, j: f"input_blocks.{1 + i * (layers + 1) + j}.0",
        ),
        (
            r"down_blocks\.(\d+)\.attentions\.(\d+)\.(.*)",
            lambda i, j: f"input_blocks.{1 + i * (layers + 1) + j}.1",
        ),
        (
            r"down_blocks\.(\d+)\.downsamplers\.(\d+)\.(.*)",
            lambda i, _: f"input_blocks.{(i + 1) * (layers + 1)}.0",
        ),
        (r"(mid_block)\.resnets\.(\d+)\.(.*)", lambda _, j: f"middle_block.{2 * j}"),
        (r"(mid_block)\.attentions\.(\d+)\.(.*)", lambda _, j: "middle_block.1"),
        (r"up_blocks\.(\d+)\.resnets\.(\d+)\.(.*)", lambda i, j: f"output_blocks.{i * (layers + 1) + j}.0"),
        (
            r"up_blocks\.(\d+)\.attentions\.(\d+)\.(.*)",
            lambda i, j: f"output_blocks.{i * (layers + 1) + j}.1",
        ),
        (
            r"up_blocks\.(\d+)\.upsamplers\.(\d+)\.(.*)",
            lambda i, _: f"output_blocks.{i * (layers + 1) + layers}",
        ),
        (r"(controlnet_down_blocks)\.(\d+)\.(.*)", lambda _, j: f"zero_convs.{j}.0"),
        (r"(controlnet_cond_embedding)\.blocks\.(\d+)\.(.*)", lambda _, j: f"input_hint_block.{2 * j + 2}"),
    )
    for pattern, place in rules:
        found = re.fullmatch(pattern, name)
        if found:
            first, second, rest = found.groups()
            old = place(int(first) if first.isdigit() else 0, int(second))
            if ".resnets." in name:
                inner, _, kind = rest.rpartition(".")
                return f"{old}.{_RESNET[inner]}.{kind}"
            if ".downsamplers." in name:
                return f"{old}.op.{kind}"
            if ".upsamplers." in name:
                attends = f"up_blocks.{first}.attentions.0.norm.weight" in state
                return f"{old}.{2 if attends else 1}.conv.{kind}"
            return f"{old}.{rest}"
    raise AssertionError(name)


def autoencoder(state: Mapping[str, torch.Tensor], levels: int) -> Tensors:
    """AutoencoderKL."""
    result: Tensors = {}
    for name, tensor in state.items():
        new = re.sub(r"encoder\.down_blocks\.(\d+)\.resnets", r"encoder.down.\1.block", name)
        new = re.sub(r"down_blocks\.(\d+)\.downsamplers\.0", r"down.\1.downsample", new)
        new = re.sub(r"up_blocks\.(\d+)\.resnets", lambda m: f"up.{levels - 1 - int(m[1])}.block", new)
        new = re.sub(
            r"up_blocks\.(\d+)\.upsamplers\.0", lambda m: f"up.{levels - 1 - int(m[1])}.upsample", new
        )
        new = re.sub(r"mid_block\.resnets\.(\d)", lambda m: f"mid.block_{int(m[1]) + 1}", new)
        new = new.replace("mid_block.attentions.0", "mid.attn_1").replace("conv_shortcut", "nin_shortcut")
        new = new.replace("conv_norm_out", "norm_out")
        if "attn_1" in new:
            for old, short in {
                "group_norm": "norm",
                "to_q": "q",
                "to_k": "k",
                "to_v": "v",
                "to_out.0": "proj_out",
            }.items():
                new = new.replace(old, short)
            if tensor.ndim == 2:
                tensor = tensor[:, :, None, None]
        result[new] = tensor
    return result


def open_clip(state: Mapping[str, torch.Tensor]) -> Tensors:
    """CLIPTextModelWithProjection."""
    result: Tensors = {}
    names = {
        "text_model.embeddings.token_embedding.weight": "token_embedding.weight",
        "text_model.embeddings.position_embedding.weight": "positional_embedding",
        "text_model.final_layer_norm.weight": "ln_final.weight",
        "text_model.final_layer_norm.bias": "ln_final.bias",
    }
    inner = {"layer_norm1": "ln_1", "layer_norm2": "ln_2", "mlp.fc1": "mlp.c_fc", "mlp.fc2": "mlp.c_proj"}
    inner["self_attn.out_proj"] = "attn.out_proj"
    for name, tensor in state.items():
        found = re.fullmatch(r"text_model\.encoder\.layers\.(\d+)\.(.*)\.(weight|bias)", name)
        if name in names:
            result[names[name]] = tensor
        elif name == "text_projection.weight":
            result["text_projection"] = tensor.T.contiguous()
        elif found and found[2] in inner:
            result[f"transformer.resblocks.{found[1]}.{inner[found[2]]}.{found[3]}"] = tensor
        elif found and found[2] == "self_attn.q_proj":
            thirds = [state[name.replace("q_proj", f"{letter}_proj")] for letter in "qkv"]
            result[f"transformer.resblocks.{found[1]}.attn.in_proj_{found[3]}"] = torch.cat(thirds)
    return result


def sd3(state: Mapping[str, torch.Tensor], layers: int) -> Tensors:
    """SD3Transformer2DModel."""
    flat = {
        "pos_embed.pos_embed": "pos_embed",
        "pos_embed.proj": "x_embedder.proj",
        "time_text_embed.timestep_embedder.linear_1": "t_embedder.mlp.0",
        "time_text_embed.timestep_embedder.linear_2": "t_embedder.mlp.2",
        "time_text_embed.text_embedder.linear_1": "y_embedder.mlp.0",
        "time_text_embed.text_embedder.linear_2": "y_embedder.mlp.2",
        "context_embedder": "context_embedder",
        "proj_out": "final_layer.linear",
        "norm_out.linear": "final_layer.adaLN_modulation.1",
    }
    inner = {
        "attn.to_out.0": "x_block.attn.proj",
        "attn.to_add_out": "context_block.attn.proj",
        "attn.norm_q": "x_block.attn.ln_q",
        "attn.norm_k": "x_block.attn.ln_k",
        "attn.norm_added_q": "context_block.attn.ln_q",
        "attn.norm_added_k": "context_block.attn.ln_k",
        "attn2.norm_q": "x_block.attn2.ln_q",
        "attn2.norm_k": "x_block.attn2.ln_k",
        "attn2.to_out.0": "x_block.attn2.proj",
        "norm1.linear": "x_block.adaLN_modulation.1",
        "norm1_context.linear": "context_block.adaLN_modulation.1",
        "ff.net.0.proj": "x_block.mlp.fc1",
        "ff.net.2": "x_block.mlp.fc2",
        "ff_context.net.0.proj": "context_block.mlp.fc1",
        "ff_context.net.2": "context_block.mlp.fc2",
    }
    result: Tensors = {}
    for name, tensor in state.items():
        stem, _, kind = name.rpartition(".")
        found = re.fullmatch(r"transformer_blocks\.(\d+)\.(.*)", stem)
        swapped = stem == "norm_out.linear" or stem == f"transformer_blocks.{layers - 1}.norm1_context.linear"
        tensor = torch.cat(tensor.chunk(2)[::-1]) if swapped else tensor
        if name in flat or stem in flat:
            result[flat[name] if name in flat else f"{flat[stem]}.{kind}"] = tensor
        elif found and found[2] in inner:
            result[f"joint_blocks.{found[1]}.{inner[found[2]]}.{kind}"] = tensor
        elif found and found[2] in ("attn.to_q", "attn.add_q_proj", "attn2.to_q"):
            side = "context_block" if found[2] == "attn.add_q_proj" else "x_block"
            old = f"joint_blocks.{found[1]}.{side}.{found[2].partition('.')[0]}.qkv.{kind}"
            result[old] = fused(state, _thirds(name))
    return result


def z_image(state: Mapping[str, torch.Tensor]) -> Tensors:
    """ZImageTransformer2DModel."""
    result: Tensors = {}
    for name, tensor in state.items():
        new = name.replace("all_final_layer.2-1.", "final_layer.").replace(
            "all_x_embedder.2-1.", "x_embedder."
        )
        new = new.replace(".attention.to_out.0.", ".attention.out.")
        new = new.replace(".attention.norm_k.", ".attention.k_norm.").replace(
            ".attention.norm_q.", ".attention.q_norm."
        )
        if ".attention.to_q." in new:
            result[new.replace("to_q", "qkv")] = fused(state, _thirds(name))
        elif ".attention.to_k." not in new and ".attention.to_v." not in new:
            result[new] = tensor
    return result


def fused(state: Mapping[str, torch.Tensor], names: Sequence[str]) -> torch.Tensor:
    return torch.cat([state[name] for name in names])


def _thirds(name: str) -> list[str]:
    if "add_q_proj" in name:
        return [name.replace("add_q_proj", f"add_{letter}_proj") for letter in "qkv"]
    return [name.replace("to_q", f"to_{letter}") for letter in "qkv"]


def below(prefix: str, tensors: Mapping[str, torch.Tensor]) -> Tensors:
    return {f"{prefix}{name}": tensor.contiguous() for name, tensor in tensors.items()}


def flux(state: Mapping[str, torch.Tensor]) -> Tensors:
    """FluxTransformer2DModel."""
    flat = {
        "x_embedder": "img_in",
        "context_embedder": "txt_in",
        "proj_out": "final_layer.linear",
        "norm_out.linear": "final_layer.adaLN_modulation.1",
    }
    for kind, old in (("timestep", "time"), ("text", "vector"), ("guidance", "guidance")):
        flat[f"time_text_embed.{kind}_embedder.linear_1"] = f"{old}_in.in_layer"
        flat[f"time_text_embed.{kind}_embedder.linear_2"] = f"{old}_in.out_layer"
    double = {"norm1.linear": "img_mod.lin", "norm1_context.linear": "txt_mod.lin"}
    double |= {"attn.to_out.0": "img_attn.proj", "attn.to_add_out": "txt_attn.proj"}
    double |= {"ff.net.0.proj": "img_mlp.0", "ff.net.2": "img_mlp.2"}
    double |= {"ff_context.net.0.proj": "txt_mlp.0", "ff_context.net.2": "txt_mlp.2"}
    norms = {"attn.norm_q": "img_attn.norm.query_norm", "attn.norm_k": "img_attn.norm.key_norm"}
    norms |= {"attn.norm_added_q": "txt_attn.norm.query_norm", "attn.norm_added_k": "txt_attn.norm.key_norm"}
    single = {"norm.linear": "modulation.lin", "proj_out": "linear2"}
    result: Tensors = {}
    for name, tensor in state.items():
        stem, _, kind = name.rpartition(".")
        found = re.fullmatch(r"(single_)?transformer_blocks\.(\d+)\.(.*)", stem)
        if found is None:
            swapped = stem == "norm_out.linear"
            result[f"{flat[stem]}.{kind}"] = torch.cat(tensor.chunk(2)[::-1]) if swapped else tensor
            continue
        block, inner = f"{'single' if found[1] else 'double'}_blocks.{found[2]}", found[3]
        if inner in norms:
            new = norms[inner].removeprefix("img_attn.") if found[1] else norms[inner]
            result[f"{block}.{new}.scale"] = tensor
        elif inner in (single if found[1] else double):
            result[f"{block}.{(single if found[1] else double)[inner]}.{kind}"] = tensor
        elif inner == "attn.to_q" and found[1]:
            mlp = name.replace("attn.to_q", "proj_mlp")
            result[f"{block}.linear1.{kind}"] = fused(state, [*_thirds(name), mlp])
        elif inner in ("attn.to_q", "attn.add_q_proj"):
            side = "img" if inner == "attn.to_q" else "txt"
            result[f"{block}.{side}_attn.qkv.{kind}"] = fused(state, _thirds(name))
    return result
