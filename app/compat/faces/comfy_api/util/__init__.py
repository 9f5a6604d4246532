"""`comfy_api.util`: what videos are written as. `Types` of comfy_api.latest is this module."""

from app.compat.v3.video import VideoCodec, VideoComponents, VideoContainer

__all__ = ["VideoCodec", "VideoComponents", "VideoContainer"]
