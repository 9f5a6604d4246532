"""The widgets of a node, in the order in which a saved workflow lists their values.

Rules that follow the definition alone; links and subgraphs are elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from app.workflow.defaults import NOTHING, choices, default_value, is_multiple
from app.workflow.tolerant import mapping, mappings, sequence, whole

Definition = Mapping[str, Any]
InputEntry = tuple[str, str, Mapping[str, Any], bool]  # name, type, options, required
Saved = Sequence[Any] | Mapping[str, Any] | None

WIDGET_TYPES = frozenset(
    [
        "INT",
        "FLOAT",
        "BOOLEAN",
        "STRING",
        "COMBO",
        "MARKDOWN",
        "TEXTAREA",
        "COLOR",
        "COLORS",
        "BOUNDING_BOX",
        "BOUNDING_BOXES",
        "CURVE",
        "RANGE",
        "CHART",
        "GALLERIA",
        "IMAGECOMPARE",
        "PAINTER",
        "COMPOSITOR",
        "VIDEO_EDIT",
        "LIGHT_INFO_PREVIEW",
        "RESOLUTION_PREVIEW",
        "IMAGEUPLOAD",
        "COMFY_DYNAMICCOMBO_V3",
        "COMFY_DYNAMICGROUP_V3",
        "COMFY_AUTOGROW_V3",
        "AUDIO_UI",
        "AUDIOUPLOAD",
        "AUDIO_RECORD",
        "WEBCAM",
        "LOAD_3D",
        "LOAD_3D_ADVANCED",
        "PREVIEW_3D",
        "CAMERA_INFO_STATE",
        "CAMERA_ANGLE_VIEW",
        "COMFY_BRANCH_INPUT_NAMES",
        "COMFY_BRANCH_SELECTOR",
    ]
)
_VIEWPORT_NODES = frozenset(
    [
        "Load3DAdvanced",
        "Preview3DAdvanced",
        "Save3DAdvanced",
        "PreviewGaussianSplat",
        "PreviewPointCloud",
        "SaveGaussianSplat",
        "SavePointCloud",
    ]
)
_VIEWER_NODES = frozenset({"SaveGLB", "Preview3D"})
_LOAD_3D_BUTTONS = (
    ("upload 3d model", "upload3dmodel"),
    ("upload extra resources", "uploadExtraResources"),
    ("clear", "clear"),
)
MAX_GROUP_ROWS = 20
_MEDIA_UPLOADS = ("image_upload", "video_upload", "animated_image_upload")


@dataclass(slots=True)
class Widget:
    """`saved`: has a place in `widgets_values`. `sent`: is in the prompt. `fixed`: ignores a saved value."""

    name: str
    value: Any
    type: str = "STRING"
    options: Mapping[str, Any] = field(default_factory=dict)
    saved: bool = True
    sent: bool = True
    fixed: bool = False


def input_entries(definition: Definition) -> list[InputEntry]:
    """Inputs in the order that widgets follow: `input_order` first, then what it does not list."""
    groups, order = mapping(definition.get("input")), mapping(definition.get("input_order"))
    entries: list[InputEntry] = []
    late: list[InputEntry] = []
    for group in ("required", "optional"):
        declared = mapping(groups.get(group))
        ordered = [name for name in sequence(order.get(group)) if isinstance(name, str) and name in declared]
        listed = ordered if order else list(declared)
        entries += [_entry(name, declared[name], group == "required") for name in listed]
        late += [_entry(name, declared[name], group == "required") for name in declared if name not in listed]
    return entries + late


def _entry(name: str, declared: Any, required: bool) -> InputEntry:
    parts = declared if isinstance(declared, list | tuple) and declared else ["*"]
    options = dict(parts[1]) if len(parts) > 1 and isinstance(parts[1], dict) else {}
    if isinstance(parts[0], list | tuple):
        return name, "COMBO", {"options": list(parts[0]), **options}, required
    return name, str(parts[0]), options, required


def is_socket(entry: InputEntry) -> bool:
    """Whether the input has a socket and no widget."""
    _, kind, options, required = entry
    if options.get("forceInput") or (options.get("defaultInput") and not required):
        return True
    if kind == "COMFY_AUTOGROW_V3":
        return is_socket(_autogrow_row(options))
    return str(options.get("widgetType") or kind) not in WIDGET_TYPES


def is_forced(entry: InputEntry) -> bool:
    """A type that has a widget, but whose input is declared to be a socket."""
    _, kind, options, _ = entry
    return is_socket(entry) and str(options.get("widgetType") or kind) in WIDGET_TYPES


def build_widgets(node_type: str, definition: Definition, values: Saved) -> list[Widget]:
    """All widgets with the saved values, taken one by one or by name; missing ones keep their defaults."""
    return list(_Walk(node_type, definition, values).widgets())


def sent_value(widget: Widget) -> Any:
    """As it stands in a prompt: a bare list would read as a link, so lists are wrapped."""
    if widget.type == "CURVE" and widget.value is not None:
        return {"__type__": "CURVE", "__value__": widget.value}
    return {"__value__": widget.value} if isinstance(widget.value, list) else widget.value


class _Walk:
    """One pass over a definition; each saved widget takes the next value, so a choice can add widgets."""

    def __init__(self, node_type: str, definition: Definition, values: Saved) -> None:
        self.node_type = node_type
        self.named = values if isinstance(values, Mapping) else None
        self.listed = iter(()) if values is None or isinstance(values, Mapping) else iter(values)
        self.entries = input_entries(definition)
        self.has_order = bool(definition.get("input_order"))
        self.has_model_file = False

    def widgets(self) -> Iterator[Widget]:
        buttons = [button for entry in self.entries for button in _upload_button(entry)]
        uploads = [] if any(name == "upload" for name, *_ in self.entries) else buttons[:1]
        last_required = max((i for i, entry in enumerate(self.entries) if entry[3]), default=-1)
        for index, entry in enumerate(self.entries):
            yield from self.of_input(entry)
            if not self.has_order and index == last_required:
                yield from map(self.load, uploads)
        if self.has_order:
            yield from map(self.load, uploads)
        if self.node_type in _VIEWER_NODES:
            yield self.load(Widget("image", "", fixed=True))
        if any(kind == "WEBCAM" for _, kind, *_ in self.entries):
            yield self.load(Widget("capture", "capture", sent=False))
        if self.node_type == "CustomCombo":
            yield from self.custom_combo_rows()

    def load(self, widget: Widget) -> Widget:
        self.has_model_file = self.has_model_file or widget.name == "model_file"
        if widget.saved:
            if self.named is not None:
                value = self.named.get(widget.name, NOTHING)
            else:
                value = next(self.listed, NOTHING)
            if value is not NOTHING and not widget.fixed:
                widget.value = _repaired(self.node_type, widget, value)
        return widget

    def of_input(self, entry: InputEntry) -> Iterator[Widget]:
        if is_socket(entry):
            return
        name, kind, options, _ = entry
        kind = str(options.get("widgetType") or kind)
        special = _SPECIAL.get(kind)
        if special is not None:
            yield from special(self, name, kind, options)
            return
        yield self.load(Widget(name, default_value(kind, options), kind, options))
        for extra in _followers(name, kind, options):
            yield self.load(extra)

    def dynamic_combo(self, name: str, kind: str, options: Mapping[str, Any]) -> Iterator[Widget]:
        offered = {str(choice.get("key")): choice for choice in mappings(choices(options))}
        key = self.load(Widget(name, next(iter(offered), NOTHING), kind, options))
        yield key
        chosen = offered.get(str(key.value)) or {}
        for child in input_entries({"input": chosen.get("inputs")}):
            yield from self.of_input((f"{name}.{child[0]}", *child[1:]))

    def dynamic_group(self, name: str, kind: str, options: Mapping[str, Any]) -> Iterator[Widget]:
        template = mapping(options.get("template"))
        fewest, most = whole(template.get("min"), 0), whole(template.get("max"), MAX_GROUP_ROWS)
        count = self.load(Widget(name, fewest, kind, options, sent=False))
        yield count
        for row in range(max(fewest, min(whole(count.value, 0), most, MAX_GROUP_ROWS))):
            for child in input_entries({"input": template}):
                yield from self.of_input((f"{name}.{row}.{child[0]}", *child[1:]))

    def autogrow(self, name: str, _kind: str, options: Mapping[str, Any]) -> Iterator[Widget]:
        _, row_kind, row_options, required = _autogrow_row(options)
        for row_name in autogrow_names(options):
            yield from self.of_input((f"{name}.{row_name}", row_kind, row_options, required))

    def bounding_box(self, name: str, kind: str, options: Mapping[str, Any]) -> Iterator[Widget]:
        yield self.load(Widget(name, default_value(kind, options), kind, options))
        for side in ("x", "y", "width", "height"):
            yield self.load(Widget(f"{name}.{side}", 0, "INT", sent=False))

    def load_3d(self, _name: str, kind: str, options: Mapping[str, Any]) -> Iterator[Widget]:
        if self.has_model_file and self.node_type != "Load3DAdvanced":
            for label, value in _LOAD_3D_BUTTONS:
                yield self.load(Widget(label, value))
        widget_name = "viewport_state" if self.node_type in _VIEWPORT_NODES else "image"
        yield self.load(Widget(widget_name, "", kind, options))

    def unsaved(self, name: str, kind: str, options: Mapping[str, Any]) -> Iterator[Widget]:
        yield Widget(name, "", kind, options, saved=False, sent=False)

    def image_compare(self, name: str, kind: str, options: Mapping[str, Any]) -> Iterator[Widget]:
        yield Widget(name, ["", ""], kind, options, saved=False)

    def camera_angle(self, name: str, kind: str, options: Mapping[str, Any]) -> Iterator[Widget]:
        yield self.load(Widget(name, "camera", kind, options, sent=False))

    def branch_names(self, name: str, kind: str, options: Mapping[str, Any]) -> Iterator[Widget]:
        yield self.load(Widget(name, [], kind, options, fixed=True))

    def audio_record(self, name: str, kind: str, options: Mapping[str, Any]) -> Iterator[Widget]:
        yield self.load(Widget(name, "", kind, options))
        yield self.load(Widget(f"{name} button", "", sent=False))

    def upload(self, name: str, kind: str, _options: Mapping[str, Any]) -> Iterator[Widget]:
        yield self.load(_button(name, "image" if kind == "IMAGEUPLOAD" else ""))

    def custom_combo_rows(self) -> Iterator[Widget]:
        """The last row is always empty: filling it makes another. The index is made when a prompt is."""
        yield self.load(Widget("index", -1, "INT", fixed=True))
        number, row = 1, self.load(Widget("option1", ""))
        while row.value:
            yield row
            number += 1
            row = self.load(Widget(f"option{number}", ""))
        yield row


_SPECIAL: dict[str, Callable[[_Walk, str, str, Mapping[str, Any]], Iterator[Widget]]] = {
    "COMFY_DYNAMICCOMBO_V3": _Walk.dynamic_combo,
    "COMFY_DYNAMICGROUP_V3": _Walk.dynamic_group,
    "COMFY_AUTOGROW_V3": _Walk.autogrow,
    "BOUNDING_BOX": _Walk.bounding_box,
    "LOAD_3D": _Walk.load_3d,
    "LOAD_3D_ADVANCED": _Walk.load_3d,
    "RESOLUTION_PREVIEW": _Walk.unsaved,
    "CAMERA_INFO_STATE": _Walk.unsaved,
    "AUDIO_UI": _Walk.unsaved,
    "IMAGECOMPARE": _Walk.image_compare,
    "CAMERA_ANGLE_VIEW": _Walk.camera_angle,
    "COMFY_BRANCH_INPUT_NAMES": _Walk.branch_names,
    "AUDIO_RECORD": _Walk.audio_record,
    "IMAGEUPLOAD": _Walk.upload,
    "AUDIOUPLOAD": _Walk.upload,
}


def _followers(name: str, kind: str, options: Mapping[str, Any]) -> Iterator[Widget]:
    if kind == "COMBO" and is_multiple(options):
        return
    if kind == "COMBO" and options.get("remote"):
        yield Widget("auto-refresh", False, "BOOLEAN", sent=False)
        if mapping(options["remote"]).get("refresh_button"):
            yield Widget("refresh", "refresh")
    control = options.get("control_after_generate")
    by_name = kind == "INT" and control is None and name in ("seed", "noise_seed")
    if kind in ("INT", "FLOAT", "COMBO") and (control or by_name):
        yield control_widget(kind, control)
        if kind == "COMBO":
            yield Widget("control_filter_list", "", sent=False)


_CONTROL_MODES = ("fixed", "increment", "decrement", "randomize")


def control_widget(kind: str, control: Any) -> Widget:
    """A text that is no mode is the widget's name."""
    mode = control if control in _CONTROL_MODES else ("fixed" if kind == "FLOAT" else "randomize")
    named = isinstance(control, str) and control not in _CONTROL_MODES
    return Widget(control if named else "control_after_generate", mode, "CONTROL", sent=False)


def _upload_button(entry: InputEntry) -> Iterator[Widget]:
    _, kind, options, required = entry
    if kind == "COMBO" and required and any(options.get(upload) for upload in _MEDIA_UPLOADS):
        yield _button("upload", "image")
    elif kind == "COMBO" and options.get("audio_upload"):
        yield _button("upload", "")


def _button(name: str, rests: str) -> Widget:
    """`rests`: the value that it keeps; another one in its place belongs to another widget."""
    return Widget(name, rests, "BUTTON", {"rests": rests}, sent=False)


def _autogrow_row(options: Mapping[str, Any]) -> InputEntry:
    template = mapping(options.get("template"))
    return next(iter(input_entries({"input": template.get("input")})), ("", "*", {}, True))


def autogrow_names(options: Mapping[str, Any]) -> list[str]:
    """The rows that exist before anything is connected: one more than the minimum."""
    template = mapping(options.get("template"))
    rows = min(whole(template.get("min"), 1) + 1, whole(template.get("max"), 100), 100)
    names = sequence(template.get("names"))
    if names:
        return [str(name) for name in names][:rows]
    return [f"{template.get('prefix', '')}{row}" for row in range(rows)]


def _repaired(node_type: str, widget: Widget, value: Any) -> Any:
    if widget.type == "COMBO" and value is None:
        return next(iter(choices(widget.options)), None)
    if widget.type == "CONTROL" and isinstance(value, bool):
        return "randomize" if value else "fixed"
    samplers = ("KSampler", "KSamplerAdvanced")
    if widget.name == "sampler_name" and node_type in samplers and isinstance(value, str):
        return value.removeprefix("sample_")
    return value
