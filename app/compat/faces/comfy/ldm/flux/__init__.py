"""`comfy.ldm.flux`: the package only."""
