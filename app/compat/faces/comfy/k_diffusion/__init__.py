"""`comfy.k_diffusion`: the package only."""
