"""LoRA folders as peft saves them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import peft
import torch
from transformers import AutoModelForCausalLM

from runtime.platform.building import building


def base(folder: Path) -> Any:
    with building:
        return AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()


def save_adapter(model: Path, folder: Path, seed: int, **settings: Any) -> Path:
    """Its B are random, where peft begins with zeros."""
    torch.manual_seed(seed)
    network = peft.get_peft_model(base(model), peft.LoraConfig(**settings))
    for name, each in network.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(each.data, std=0.1)
    network.save_pretrained(folder)
    return folder
