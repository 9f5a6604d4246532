"""`comfy.ldm.modules.diffusionmodules.mmdit`: names only."""

from __future__ import annotations

from app.compat.named import named

(
    JointBlock,
    RMSNorm,
    MMDiT,
    OpenAISignatureMMDITWrapper,
) = named(
    "comfy.ldm.modules.diffusionmodules.mmdit",
    "JointBlock",
    "RMSNorm",
    "MMDiT",
    "OpenAISignatureMMDITWrapper",
)
