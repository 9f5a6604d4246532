"""Models that load side by side come out whole, and leave the libraries as they were."""

from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import torch
from transformers import PreTrainedModel

from runtime.diffusion.model import Loader, inspect_checkpoint
from runtime.llm.api import CompleteRequest, SamplingParams
from runtime.llm.engine import Engine
from tests.cpu.llm.conftest import save_random, tiny_llama

GLYPH = Path(__file__).parents[3] / "models/checkpoints/glyph"


def test_both_runtimes_load_many_models_at_once(tmp_path: Path) -> None:
    config = tiny_llama()
    config.tie_word_embeddings = True
    folder = save_random(config, tmp_path / "tied")
    names = [f"model{number}" for number in range(6)]
    before = PreTrainedModel.tie_weights, torch.nn.Module.register_parameter, torch.nn.init.normal_
    engine = Engine(lambda: dict.fromkeys(names, folder))
    checkpoint = inspect_checkpoint(GLYPH)
    assert checkpoint.model is not None
    assert checkpoint.vae is not None
    try:
        with ThreadPoolExecutor(8) as pool:
            parts: list[Future[object]] = [
                pool.submit(Loader(dict).network, checkpoint.model) for _ in range(4)
            ]
            parts += [pool.submit(Loader(dict).autoencoder, checkpoint.vae) for _ in range(4)]
            params = SamplingParams(max_tokens=3, temperature=0, ignore_eos=True)
            asked = [CompleteRequest(name, name, (5, 6, 7), params) for name in names]
            handles = [engine.submit(request) for request in asked]
            answers = [handle.wait(60) for handle in handles]
            for part in parts:
                part.result()
    finally:
        engine.close()
    assert len({answer.token_ids for answer in answers}) == 1
    assert before == (PreTrainedModel.tie_weights, torch.nn.Module.register_parameter, torch.nn.init.normal_)
