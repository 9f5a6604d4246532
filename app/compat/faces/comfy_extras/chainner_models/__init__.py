"""`comfy_extras.chainner_models`: the package only."""
