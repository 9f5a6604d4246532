// What every widget is given: its description, its value, and how to change it.

import type { Json } from "../../graph/json.ts";
import type { Widget } from "../../graph/widgets.ts";

export interface WidgetProps {
  readonly id: string;
  readonly widget: Widget;
  readonly value: Json | undefined;
  readonly label: string;
  readonly onChange: (value: Json) => void;
}
