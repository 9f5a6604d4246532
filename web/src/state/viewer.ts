// The pictures that are looked at in full size.

import { create } from "zustand";
import type { StoredFile } from "../api/output.ts";

interface Viewer {
  readonly files: readonly StoredFile[];
  readonly index: number;
}

export const useViewer = create<Viewer>(() => ({ files: [], index: 0 }));

export function showPictures(files: readonly StoredFile[], index: number): void {
  useViewer.setState({ files, index });
}

export function closeViewer(): void {
  useViewer.setState({ files: [], index: 0 });
}
