"""`comfy`: the package only; what it holds is imported when it is asked for."""
