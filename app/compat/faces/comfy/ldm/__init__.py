"""`comfy.ldm`: the package only."""
