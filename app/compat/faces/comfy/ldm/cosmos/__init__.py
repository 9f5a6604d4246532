"""`comfy.ldm.cosmos`: the package only."""
