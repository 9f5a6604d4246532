"""`comfy_api.util.video_types`: what videos are written as."""

from app.compat.v3.video import VideoCodec, VideoComponents, VideoContainer

__all__ = ["VideoCodec", "VideoComponents", "VideoContainer"]
