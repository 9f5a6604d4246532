"""`comfy.conds`: conditionings wrapped for merging, which this program's runtime does itself."""

from __future__ import annotations

from typing import Any


class CONDRegular:
    def __init__(self, cond: Any) -> None:
        self.cond = cond

    def _copy_with(self, cond: Any) -> Any:
        return type(self)(cond)


class CONDNoiseShape(CONDRegular):
    pass


class CONDCrossAttn(CONDRegular):
    pass


class CONDConstant(CONDRegular):
    pass


class CONDList(CONDRegular):
    pass
