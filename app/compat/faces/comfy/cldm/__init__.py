"""`comfy.cldm`: the package only."""
