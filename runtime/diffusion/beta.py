"""The quantile function of the beta distribution, which the "beta" spacing of noise levels needs."""

from __future__ import annotations

import math


def beta_quantile(probability: float, a: float, b: float) -> float:
    """The x in 0..1 below which lies `probability` of the distribution, by bisection."""
    if probability <= 0:
        return 0.0
    if probability >= 1:
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(52):
        middle = (low + high) / 2
        if _regularised(middle, a, b) < probability:
            low = middle
        else:
            high = middle
    return round(
        (low + high) / 2, 12
    )  # the middle must come out as the middle: callers round to table places


def _regularised(x: float, a: float, b: float) -> float:
    if x <= 0 or x >= 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):  # the fraction converges quickly only below this point
        return 1 - _regularised(1 - x, b, a)
    log_front = (
        math.lgamma(a + b)
        - math.lgamma(a)
        - math.lgamma(b)
        + a * math.log(x)
        + b * math.log1p(-x)
        - math.log(a)
    )
    return math.exp(log_front) / _continued_fraction(x, a, b)


def _continued_fraction(x: float, a: float, b: float) -> float:
    """1 + d1 / (1 + d2 / (1 + ...)), evaluated from its tail."""
    value = 1.0
    for n in range(60, 0, -1):
        m = n // 2
        if n % 2:
            term = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        else:
            term = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        value = 1 + term / value
    return value
