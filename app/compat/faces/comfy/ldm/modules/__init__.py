"""`comfy.ldm.modules`: the package only."""
