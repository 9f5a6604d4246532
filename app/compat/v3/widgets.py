"""The types whose inputs are fields on the node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum, StrEnum
from typing import Any

from app.compat.v3.inputs import Output as PlainOutput
from app.compat.v3.inputs import WidgetInput, present
from app.compat.v3.sockets import ComfyTypeIO


class NumberDisplay(StrEnum):
    number = "number"
    slider = "slider"
    gradient_slider = "gradientslider"


class ControlAfterGenerate(StrEnum):
    fixed = "fixed"
    increment = "increment"
    decrement = "decrement"
    randomize = "randomize"


class FolderType(StrEnum):
    input = "input"
    output = "output"
    temp = "temp"


class UploadType(StrEnum):
    image = "image_upload"
    audio = "audio_upload"
    video = "video_upload"
    model = "file_upload"


class RemoteOptions:
    """Choices that a browser fetches from a route."""

    def __init__(
        self,
        route: str,
        refresh_button: bool,
        control_after_refresh: str = "first",
        timeout: int | None = None,
        max_retries: int | None = None,
        refresh: int | None = None,
    ) -> None:
        self._fields = {
            "route": route,
            "refresh_button": refresh_button,
            "control_after_refresh": control_after_refresh,
            "timeout": timeout,
            "max_retries": max_retries,
            "refresh": refresh,
        }

    def as_dict(self) -> dict[str, Any]:
        return present(self._fields)


Shared = Any


class Boolean(ComfyTypeIO):
    io_type = "BOOLEAN"
    Type = bool

    class Input(WidgetInput):
        def __init__(
            self,
            id: str,
            display_name: str | None = None,
            optional: bool = False,
            tooltip: str | None = None,
            lazy: bool | None = None,
            default: bool | None = None,
            label_on: str | None = None,
            label_off: str | None = None,
            **shared: Shared,
        ) -> None:
            labels: dict[str, Any] = {"label_on": label_on, "label_off": label_off}
            super().__init__(id, display_name, optional, tooltip, lazy, default, **labels, **shared)


class Int(ComfyTypeIO):
    io_type = "INT"
    Type = int

    class Input(WidgetInput):
        def __init__(
            self,
            id: str,
            display_name: str | None = None,
            optional: bool = False,
            tooltip: str | None = None,
            lazy: bool | None = None,
            default: int | None = None,
            min: int | None = None,
            max: int | None = None,
            step: int | None = None,
            control_after_generate: bool | ControlAfterGenerate | None = None,
            display_mode: NumberDisplay | None = None,
            **shared: Shared,
        ) -> None:
            control: dict[str, Any] = {
                "control_after_generate": control_after_generate,
                "display": display_mode,
            }
            limits: dict[str, Any] = {"min": min, "max": max, "step": step}
            super().__init__(
                id, display_name, optional, tooltip, lazy, default, **limits, **control, **shared
            )


class Float(ComfyTypeIO):
    io_type = "FLOAT"
    Type = float

    class Input(WidgetInput):
        def __init__(
            self,
            id: str,
            display_name: str | None = None,
            optional: bool = False,
            tooltip: str | None = None,
            lazy: bool | None = None,
            default: float | None = None,
            min: float | None = None,
            max: float | None = None,
            step: float | None = None,
            round: float | None = None,
            display_mode: NumberDisplay | None = None,
            **shared: Shared,
        ) -> None:
            limits: dict[str, Any] = {
                "min": min,
                "max": max,
                "step": step,
                "round": round,
                "display": display_mode,
            }
            super().__init__(id, display_name, optional, tooltip, lazy, default, **limits, **shared)


class String(ComfyTypeIO):
    io_type = "STRING"
    Type = str

    class Input(WidgetInput):
        def __init__(
            self,
            id: str,
            display_name: str | None = None,
            optional: bool = False,
            tooltip: str | None = None,
            lazy: bool | None = None,
            multiline: bool = False,
            placeholder: str | None = None,
            default: str | None = None,
            dynamic_prompts: bool | None = None,
            **shared: Shared,
        ) -> None:
            text: dict[str, Any] = {
                "multiline": multiline,
                "placeholder": placeholder,
                "dynamicPrompts": dynamic_prompts,
            }
            super().__init__(id, display_name, optional, tooltip, lazy, default, **text, **shared)


class Color(ComfyTypeIO):
    io_type = "COLOR"
    Type = str
    Input = WidgetInput


def choices_of(options: Any) -> list[Any] | None:
    """A list, or an enum whose values are the choices."""
    if isinstance(options, type) and issubclass(options, Enum):
        return [member.value for member in options]
    return None if options is None else list(options)


class Combo(ComfyTypeIO):
    io_type = "COMBO"
    Type = str

    class Input(WidgetInput):
        multiselect = False

        def __init__(
            self,
            id: str,
            options: Sequence[Any] | type[Enum] | None = None,
            display_name: str | None = None,
            optional: bool = False,
            tooltip: str | None = None,
            lazy: bool | None = None,
            default: Any = None,
            control_after_generate: bool | ControlAfterGenerate | None = None,
            upload: UploadType | None = None,
            image_folder: FolderType | None = None,
            remote: RemoteOptions | None = None,
            **shared: Shared,
        ) -> None:
            of_uploads: dict[str, Any] = {} if upload is None else {upload.value: True}
            super().__init__(
                id,
                display_name,
                optional,
                tooltip,
                lazy,
                default.value if isinstance(default, Enum) else default,
                multiselect=self.multiselect,
                options=choices_of(options),
                control_after_generate=control_after_generate,
                image_folder=image_folder,
                remote=remote,
                **of_uploads,
                **shared,
            )

    class Output(PlainOutput):
        def __init__(
            self,
            id: str | None = None,
            display_name: str | None = None,
            options: Sequence[Any] | type[Enum] | None = None,
            tooltip: str | None = None,
            is_output_list: bool = False,
        ) -> None:
            super().__init__(id, display_name, tooltip, is_output_list)
            self.options = choices_of(options) or []


class MultiCombo(ComfyTypeIO):
    io_type = "COMBO"
    Type = list

    class Input(Combo.Input):
        multiselect = True

        def __init__(
            self,
            id: str,
            options: Sequence[Any],
            display_name: str | None = None,
            optional: bool = False,
            tooltip: str | None = None,
            lazy: bool | None = None,
            default: Sequence[Any] | None = None,
            placeholder: str | None = None,
            chip: bool | None = None,
            **shared: Any,
        ) -> None:
            many: Mapping[str, Any] = present({"placeholder": placeholder, "chip": chip})
            super().__init__(
                id, options, display_name, optional, tooltip, lazy, default, multi_select=dict(many), **shared
            )
