"""`comfy.ldm.modules.diffusionmodules`: the package only."""
