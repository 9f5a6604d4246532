"""`comfy.model_sampling`: names only; nodes such as ModelSamplingSD3 serve it."""

from __future__ import annotations

from app.compat.named import named

(
    EPS,
    V_PREDICTION,
    EDM,
    CONST,
    ModelSamplingDiscrete,
    ModelSamplingDiscreteFlow,
    ModelSamplingContinuousEDM,
    ModelSamplingFlux,
    time_snr_shift,
    flux_time_shift,
) = named(
    "comfy.model_sampling",
    "EPS",
    "V_PREDICTION",
    "EDM",
    "CONST",
    "ModelSamplingDiscrete",
    "ModelSamplingDiscreteFlow",
    "ModelSamplingContinuousEDM",
    "ModelSamplingFlux",
    "time_snr_shift",
    "flux_time_shift",
)
