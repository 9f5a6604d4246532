"""`comfy.text_encoders`: the package only."""
