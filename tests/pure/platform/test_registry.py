import pytest

from runtime.platform.errors import Unsupported
from runtime.platform.registry import Registry


def test_an_unknown_name_is_told_what_is_supported() -> None:
    registry: Registry[int] = Registry("sampler")
    registry.register("euler")(1)
    registry.register("heun")(2)
    assert registry["heun"] == 2
    with pytest.raises(Unsupported, match="unknown sampler 'ddim'; supported: euler, heun"):
        registry["ddim"]
