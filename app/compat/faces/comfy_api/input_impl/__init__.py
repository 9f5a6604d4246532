"""`comfy_api.input_impl`: what stands behind the inputs of `comfy_api.input`."""

from app.compat.v3.video import VideoFromComponents, VideoFromFile

__all__ = ["VideoFromComponents", "VideoFromFile"]
