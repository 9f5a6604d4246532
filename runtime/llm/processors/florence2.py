"""Florence-2: one picture and a task, written as `<OD>`; places in an answer are tokens of their own."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from runtime.llm.api import Image, Media
from runtime.llm.processors.base import Processor

_TASK = re.compile(r"\s*(<[A-Z_]+>)")


class Florence2(Processor):
    model_types = ("florence2",)

    def extended(
        self, prompt: str, token_ids: Sequence[int], media: Sequence[Media]
    ) -> Mapping[str, Any] | None:
        """Boxes and polygons in pixels of the picture with their labels, by the name of the task."""
        found = _TASK.match(prompt)
        tasks = self._processor.tasks_answer_post_processing_type
        if found is None or found[1] not in tasks or not isinstance(media[0], Image):
            return None
        known = (self._processor.post_processor_config or {}).keys()
        if tasks[found[1]] not in known:
            return None
        height, width = media[0].pixels.shape[:2]
        processor = self._thread_processor()
        text = processor.tokenizer.decode(list(token_ids), skip_special_tokens=False)
        parsed = processor.post_process_generation(text=text, task=found[1], image_size=(width, height))
        plain: Mapping[str, Any] = _plain(parsed)
        return plain


def _plain(value: Any) -> Any:
    """As JSON has it."""
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if hasattr(value, "tolist"):
        return value.tolist()
    return value
