"""The plain English name of a picture's main colour."""

import colorsys
from collections import Counter

from torch import Tensor

HUES = (
    (14, "red"),
    (40, "orange"),
    (68, "yellow"),
    (165, "green"),
    (255, "blue"),
    (292, "purple"),
    (345, "pink"),
)
MAIN = 0.55  # the share of the drawn pixels that makes a colour the main one


def main_colour(picture: Tensor) -> str | None:
    """`picture` is [3, H, W] in [-1, 1]; None where no colour prevails, or where it is gray."""
    pixels = ((picture.flatten(1).T + 1) / 2)[::7].tolist()
    counts = Counter(name for red, green, blue in pixels if (name := _name(red, green, blue)))
    if not counts:
        return None
    name, count = counts.most_common(1)[0]
    return name if count > MAIN * counts.total() and name != "gray" else None


def _name(red: float, green: float, blue: float) -> str | None:
    """None for the white paper."""
    hue, saturation, value = colorsys.rgb_to_hsv(red, green, blue)
    if value > 0.93 and saturation < 0.08:
        return None
    if value < 0.28:
        return "black"
    if saturation < 0.18:
        return "white" if value > 0.85 else "gray"
    name = next((name for limit, name in HUES if hue * 360 < limit), "red")
    if name == "red" and saturation < 0.5 and value > 0.75:
        return "pink"
    if (name == "orange" and value < 0.75) or (name == "yellow" and value < 0.6):
        return "brown"
    return name
