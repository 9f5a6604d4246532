// Which component shows which widget.

import type { ComponentType } from "react";
import { uploadKind, type Widget } from "../../graph/widgets.ts";
import { ComboWidget } from "./ComboWidget.tsx";
import { ControlWidget } from "./ControlWidget.tsx";
import { ImageWidget } from "./ImageWidget.tsx";
import { NumberWidget } from "./NumberWidget.tsx";
import type { WidgetProps } from "./props.ts";
import { RawWidget } from "./RawWidget.tsx";
import { TextWidget } from "./TextWidget.tsx";
import { ToggleWidget } from "./ToggleWidget.tsx";

const BY_KIND: Readonly<Record<Widget["kind"], ComponentType<WidgetProps> | null>> = {
  int: NumberWidget,
  float: NumberWidget,
  text: TextWidget,
  boolean: ToggleWidget,
  combo: ComboWidget,
  control: ControlWidget,
  filter: TextWidget,
  // uploading is part of the picture's own widget
  button: null,
  raw: RawWidget,
};

export function componentFor(widget: Widget): ComponentType<WidgetProps> | null {
  return widget.kind === "combo" && uploadKind(widget.input) === "image" ? ImageWidget : BY_KIND[widget.kind];
}

/** Wide widgets stand below their label instead of beside it. */
export function isWide(widget: Widget): boolean {
  const isArea = widget.kind === "text" && widget.input.options.multiline === true;
  return isArea || (widget.kind === "combo" && uploadKind(widget.input) === "image");
}
