// A picture of the input folder: chosen from the list, uploaded, or dropped on the node.

import { type DragEvent, useRef } from "react";
import { uploadImage, viewAddress } from "../../api/http.ts";
import { telling } from "../../state/notices.ts";
import { refreshDefinitions } from "../../state/session.ts";
import { Icon } from "../Icon.tsx";
import { ComboWidget } from "./ComboWidget.tsx";
import type { WidgetProps } from "./props.ts";

export function ImageWidget(props: WidgetProps) {
  const picker = useRef<HTMLInputElement>(null);
  const name = typeof props.value === "string" ? props.value : "";
  const upload = async (file: File) => {
    const stored = await uploadImage(file);
    await refreshDefinitions();
    props.onChange(stored);
  };
  const onDrop = (event: DragEvent) => {
    const file = event.dataTransfer.files[0];
    if (!file?.type.startsWith("image/")) return;
    event.preventDefault();
    event.stopPropagation();
    telling(upload(file));
  };
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: dropping is a second way to what the button does
    <div className="image-widget" onDrop={onDrop} onDragOver={(event) => event.preventDefault()}>
      <div className="image-widget-row">
        <ComboWidget {...props} />
        <button type="button" className="small" onClick={() => picker.current?.click()}>
          <Icon name="upload" /> Upload
        </button>
      </div>
      <input
        ref={picker}
        type="file"
        accept="image/*"
        hidden
        onChange={(event) => {
          const file = event.target.files?.[0];
          if (file) telling(upload(file));
          event.target.value = "";
        }}
      />
      {name && <img src={viewAddress(storedFile(name), true)} alt={name} draggable={false} />}
    </div>
  );
}

/** `folder/name.png [output]` as the parts that /view asks for. */
function storedFile(name: string) {
  const annotated = /^(.*) \[(input|output|temp)\]$/.exec(name);
  const path = annotated?.[1] ?? name;
  const cut = path.lastIndexOf("/");
  return {
    filename: path.slice(cut + 1),
    subfolder: cut < 0 ? "" : path.slice(0, cut),
    type: annotated?.[2] ?? "input",
  };
}
