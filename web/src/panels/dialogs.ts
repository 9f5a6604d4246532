// Which dialog is open; none is opened unasked.

import { create } from "zustand";

export type DialogName = "settings" | "shortcuts";

export const useDialogs = create<{ readonly open: DialogName | null }>(() => ({ open: null }));

export function openDialog(open: DialogName): void {
  useDialogs.setState({ open });
}

export function closeDialog(): void {
  useDialogs.setState({ open: null });
}
