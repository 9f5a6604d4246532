"""Packs and tensors: copies, models in faces, and the maths of comfy.utils."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from app.compat.models import ClipFace, ModelFace, ModelFaces, VaeFace
from app.compat.named import Refused
from app.graph.copies import LARGEST_BYTES, Copies
from app.graph.services import NoFaces
from runtime.diffusion.api import ModelRef, TextEncoderRef, VaeRef
from tests.cpu.compat.conftest import Serve
from tests.cpu.compat.history import shown
from tests.cpu.server.talk import graph, post

SPOILS = """
class Spoils:
    @classmethod
    def INPUT_TYPES(cls):
        return {"required": {"image": ("IMAGE",)}}
    RETURN_TYPES = ("IMAGE",)
    FUNCTION = "run"
    def run(self, image):
        image.mul_(0)
        return (image,)

class Mean:
    @classmethod
    def INPUT_TYPES(cls):
        return {"required": {"image": ("IMAGE",)}, "optional": {"after": ("*",)}}
    RETURN_TYPES = ()
    FUNCTION = "run"
    OUTPUT_NODE = True
    def run(self, image, after=None):
        return {"ui": {"mean": [float(image.mean())]}}

NODE_CLASS_MAPPINGS = {"Spoils": Spoils, "Mean": Mean}
"""


async def test_a_node_that_writes_into_its_input_spoils_it_for_nobody_now_or_later(serve: Serve) -> None:
    client = await serve({"spoils.py": SPOILS})
    white = ("EmptyImage", {"width": 8, "height": 8, "batch_size": 1, "color": 0xFFFFFF})
    prompt = graph(
        white,
        ("Spoils", {"image": ["1", 0]}),
        ("Mean", {"image": ["1", 0], "after": ["2", 0]}),
        ("Mean", {"image": ["2", 0]}),
    )
    _, answer = await post(client, prompt)
    outputs = (await shown(client, answer["prompt_id"]))["outputs"]
    assert (outputs["3"]["mean"], outputs["4"]["mean"]) == ([1.0], [0.0])
    _, answer = await post(client, graph(white, ("Mean", {"image": ["1", 0]})))
    assert (await shown(client, answer["prompt_id"]))["outputs"]["2"]["mean"] == [1.0]


def test_what_was_not_written_into_leaves_as_the_original() -> None:
    kept, spoilt = torch.ones(2), torch.ones(2)
    copies = Copies(NoFaces())
    given = copies.inputs({"kept": kept, "pair": [spoilt, {"again": spoilt}]})
    assert given["kept"] is not kept
    assert given["pair"][0] is given["pair"][1]["again"], "one tensor stays one tensor"
    given["pair"][0].zero_()
    left = copies.restored((given["kept"], given["pair"]))
    assert left[0] is kept
    assert left[1][0] is not spoilt
    assert spoilt.tolist() == [1, 1]


def test_tensors_made_in_inference_mode_are_copied_too() -> None:
    with torch.inference_mode():
        made = torch.ones(3)
    copies = Copies(NoFaces())
    copies.of(made).zero_()
    assert made.tolist() == [1, 1, 1]


def test_giants_and_what_learns_stay_themselves() -> None:
    learns = torch.ones(2, requires_grad=True)
    giant = torch.empty(LARGEST_BYTES + 1, dtype=torch.uint8, device="meta")
    copies = Copies(NoFaces())
    assert copies.of(learns) is learns
    assert copies.of(giant) is giant


def test_models_come_in_faces_and_leave_without() -> None:
    vae = VaeRef(Path("a"), "sd", 4, 8)
    model, clip = ModelRef(Path("a"), "sd"), TextEncoderRef((Path("a"),), "sd")
    copies = Copies(ModelFaces())
    given = copies.inputs({"pipe": (model, clip, vae)})["pipe"]
    assert [type(one) for one in given] == [ModelFace, ClipFace, VaeFace]
    assert given[2].latent_channels == 4
    with pytest.raises(AttributeError, match="MODEL has no 'add_patches'"):
        given[0].add_patches({})
    assert copies.restored((given[0].clone(), {"vae": given[2]})) == (model, {"vae": vae})


def test_names_without_service_can_be_imported_and_say_so_when_called() -> None:
    from app.compat.faces.comfy.model_patcher import ModelPatcher

    class Mine(ModelPatcher):
        pass

    with pytest.raises(Refused, match=r"comfy\.model_patcher\.ModelPatcher reaches into models"):
        ModelPatcher(None)
    Mine()


@pytest.mark.parametrize("overlap", [0, 4, 8])
def test_tiles_put_together_equal_the_whole(overlap: int) -> None:
    from app.compat.faces.comfy.utils import ProgressBar, get_tiled_scale_steps, tiled_scale

    x = torch.rand(2, 3, 37, 21)
    twice = lambda tile: tile.repeat_interleave(2, -1).repeat_interleave(2, -2)  # noqa: E731
    bar = ProgressBar(get_tiled_scale_steps(21, 37, 16, 16, overlap))
    scaled = tiled_scale(x, twice, 16, 16, overlap, upscale_amount=2, pbar=bar)
    torch.testing.assert_close(scaled, twice(x))
    assert bar.current == bar.total


def test_weights_are_read_renamed_and_counted(tmp_path: Path) -> None:
    from app.compat.faces.comfy import utils

    weights = {"net.a": torch.ones(2, 3), "net.b": torch.ones(4).half(), "other": torch.ones(1)}
    utils.save_torch_file(weights, str(tmp_path / "w.safetensors"), metadata={"made": "here"})
    read, metadata = utils.load_torch_file(tmp_path / "w.safetensors", return_metadata=True)
    assert metadata == {"made": "here"}
    assert utils.calculate_parameters(read, "net.") == 10
    assert utils.weight_dtype(read) == torch.float32
    assert sorted(utils.state_dict_prefix_replace(read, {"net.": ""}, filter_keys=True)) == ["a", "b"]
    torch.save({"state_dict": weights}, tmp_path / "w.ckpt")
    assert sorted(utils.load_torch_file(str(tmp_path / "w.ckpt"))) == sorted(weights)


def test_a_pickle_that_would_run_code_is_refused(tmp_path: Path) -> None:
    import pickle

    from app.compat.faces.comfy import utils

    class Runs:
        def __reduce__(self) -> object:
            return (print, ("ran",))

    torch.save({"x": Runs()}, tmp_path / "bad.pt")
    with pytest.raises(pickle.UnpicklingError):
        utils.load_torch_file(tmp_path / "bad.pt")


def test_noise_of_a_seed_is_comfyuis() -> None:
    from app.compat.faces.comfy.sample import prepare_noise

    latent = torch.zeros(2, 4, 8, 8)
    expected = torch.randn(2, 4, 8, 8, generator=torch.Generator().manual_seed(5))
    torch.testing.assert_close(prepare_noise(latent, 5), expected)
    same = prepare_noise(latent, 5, [1, 1])
    torch.testing.assert_close(same[0], same[1])
