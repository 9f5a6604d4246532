"""Trains the embedded vision-language model: it learns to name what the embedded picture model draws."""
