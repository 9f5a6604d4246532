"""`comfy_extras.nodes_custom_sampler`: those of its nodes that this program has."""

from __future__ import annotations

from app.compat.classes import core_class_getter
from nodes.custom_sampling import SeededNoise as Noise_RandomNoise  # noqa: F401

__getattr__ = core_class_getter(
    "comfy_extras.nodes_custom_sampler",
    "BasicGuider",
    "BasicScheduler",
    "CFGGuider",
    "DisableNoise",
    "ExponentialScheduler",
    "FlipSigmas",
    "KSamplerSelect",
    "KarrasScheduler",
    "ManualSigmas",
    "PolyexponentialScheduler",
    "RandomNoise",
    "SamplerCustom",
    "SamplerCustomAdvanced",
    "SetFirstSigma",
    "SplitSigmas",
    "SplitSigmasDenoise",
    "VPScheduler",
)
