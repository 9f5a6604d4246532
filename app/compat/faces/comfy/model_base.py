"""`comfy.model_base`: names only; networks are this program's runtime's."""

from __future__ import annotations

from enum import Enum

from app.compat.named import named


class ModelType(Enum):
    EPS = 1
    V_PREDICTION = 2
    V_PREDICTION_EDM = 3
    STABLE_CASCADE = 4
    EDM = 5
    FLOW = 6
    V_PREDICTION_CONTINUOUS = 7
    FLUX = 8
    IMG_TO_IMG = 9
    FLOW_COSMOS = 10


(
    BaseModel, SDXL, SDXLRefiner, SD21UNCLIP, SD3, Flux, AuraFlow, HunyuanDiT, PixArt, GenmoMochi, LTXV,
    HunyuanVideo, CosmosVideo, Lumina2, WAN21, QwenImage, SVD_img2vid, Anima, CosmosPredict2,
    Chroma, HiDream, ACEStep, Omnigen2, WAN22, model_sampling,
) = named(
    "comfy.model_base",
    "BaseModel", "SDXL", "SDXLRefiner", "SD21UNCLIP", "SD3", "Flux", "AuraFlow", "HunyuanDiT", "PixArt",
    "GenmoMochi", "LTXV", "HunyuanVideo", "CosmosVideo", "Lumina2", "WAN21", "QwenImage", "SVD_img2vid",
    "Anima", "CosmosPredict2", "Chroma", "HiDream", "ACEStep", "Omnigen2", "WAN22",
    "model_sampling",
)  # fmt: skip
