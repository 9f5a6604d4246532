"""Makes the embedded text-to-image model from a colour font and a list of emoji names."""
