"""The quantile function of the beta distribution, which the "beta" spacing of noise levels needs."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def beta_quantiles(probabilities: Sequence[float], a: float, b: float) -> list[float]:
    """For each probability the x in 0..1 below which lies that share of the distribution, by bisection."""
    wanted = np.asarray(probabilities, dtype=np.float64)
    low, high = np.zeros_like(wanted), np.ones_like(wanted)
    for _ in range(52):
        middle = (low + high) / 2
        is_below = _share_below(middle, a, b) < wanted
        low, high = np.where(is_below, middle, low), np.where(is_below, high, middle)
    found = np.where(wanted <= 0, 0.0, np.where(wanted >= 1, 1.0, (low + high) / 2))
    # the middle must come out as the middle: callers round to places of a table
    return [float(x) for x in np.round(found, 12)]


def _share_below(x: Array, a: float, b: float) -> Array:
    """The regularised incomplete beta function on the open interval."""
    # the fraction converges quickly only below this point; beyond it the other tail is taken
    is_left = x <= (a + 1) / (a + b + 2)
    left = _left_share(np.where(is_left, x, 0.5), a, b)
    right = 1 - _left_share(np.where(is_left, 0.5, 1 - x), b, a)
    return np.where(is_left, left, right)


def _left_share(x: Array, a: float, b: float) -> Array:
    log_beta = math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)
    front = np.exp(a * np.log(x) + b * np.log1p(-x) - log_beta) / a
    return front / _continued_fraction(x, a, b)


def _continued_fraction(x: Array, a: float, b: float) -> Array:
    """1 + d1 x / (1 + d2 x / (1 + ...)), evaluated from its tail."""
    value = np.ones_like(x)
    for n in range(60, 0, -1):
        m = n // 2
        if n % 2:
            factor = -(a + m) * (a + b + m) / ((a + 2 * m) * (a + 2 * m + 1))
        else:
            factor = m * (b - m) / ((a + 2 * m - 1) * (a + 2 * m))
        value = 1 + factor * x / value
    return value
