"""`comfy_api.input_impl.video_types`: videos by file and by frames."""

from app.compat.v3.video import VideoFromComponents, VideoFromFile

__all__ = ["VideoFromComponents", "VideoFromFile"]
