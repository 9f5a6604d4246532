"""`comfy_api`: the versions are packages below."""
