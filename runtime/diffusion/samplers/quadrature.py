"""Integrals of the polynomials that multistep samplers lay through earlier answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

# nodes and weights of Gauss-Legendre quadrature on -1..1
_GAUSS = (
    (-0.9602898564975363, 0.10122853629037626),
    (-0.7966664774136267, 0.22238103445337448),
    (-0.5255324099163290, 0.31370664587788727),
    (-0.1834346424956498, 0.36268378337836198),
    (0.1834346424956498, 0.36268378337836198),
    (0.5255324099163290, 0.31370664587788727),
    (0.7966664774136267, 0.22238103445337448),
    (0.9602898564975363, 0.10122853629037626),
)


def lagrange(places: Sequence[float], which: int, at: float) -> float:
    """The polynomial that is 1 at one of the places and 0 at the others."""
    value = 1.0
    for other, place in enumerate(places):
        if other != which:
            value *= (at - place) / (places[which] - place)
    return value


def integral(value: Callable[[float], float], start: float, end: float) -> float:
    """Eight points of Gauss and Legendre: exact for polynomials up to degree fifteen."""
    half, middle = (end - start) / 2, (end + start) / 2
    return half * sum(weight * value(middle + half * node) for node, weight in _GAUSS)
