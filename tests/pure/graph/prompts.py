"""Random prompts over the test's node classes, for walks."""

from __future__ import annotations

import random

from tests.fakes import box

CHOICES = ("Number", "Add", "Choose", "Spread", "Gather", "Double", "Block")


def random_prompt(rng: random.Random) -> dict:
    prompt: dict = {}
    for i in range(rng.randint(2, 18)):
        kind = rng.choice(CHOICES) if prompt else "Number"

        def source(prompt=prompt):
            return [rng.choice(list(prompt)), 0]

        inputs = {
            "Number": {"value": i},
            "Add": {"a": source() if prompt else 0, "b": source() if prompt else 0},
            "Choose": {
                "first": rng.random() < 0.5,
                "a": source() if prompt else 0,
                "b": source() if prompt else 0,
            },
            "Spread": {"count": rng.randint(1, 3)},
            "Gather": {"values": source() if prompt else 0},
            "Double": {"value": source() if prompt else 0},
            "Block": {"value": source() if prompt else 0},
        }[kind]
        prompt[str(i)] = box(kind, **inputs)
    for i in range(rng.randint(1, 3)):
        prompt[f"out{i}"] = box(
            "Show", value=[rng.choice([id for id in prompt if not id.startswith("out")]), 0]
        )
    return prompt
