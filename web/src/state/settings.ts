// What a person set for this browser: theme and panels. Kept in localStorage.

import { create } from "zustand";
import { asObject } from "../graph/json.ts";

export type Theme = "system" | "light" | "dark";
export type Panel = "queue" | "history" | "none";

export interface Settings {
  readonly theme: Theme;
  readonly panel: Panel;
  readonly hasMinimap: boolean;
  readonly snapsToGrid: boolean;
}

const KEY = "treadle.settings";
const DEFAULTS: Settings = {
  theme: "system",
  panel: "history",
  hasMinimap: true,
  snapsToGrid: false,
};

export const useSettings = create<Settings>(() => ({ ...DEFAULTS, ...stored() }));

function stored(): Partial<Settings> {
  try {
    const saved = asObject(JSON.parse(localStorage.getItem(KEY) ?? "{}"));
    const known = Object.entries(saved).filter(
      ([key, value]) => typeof value === typeof DEFAULTS[key as keyof Settings],
    );
    return Object.fromEntries(known) as Partial<Settings>;
  } catch {
    return {};
  }
}

export function change(settings: Partial<Settings>): void {
  useSettings.setState(settings);
  try {
    localStorage.setItem(KEY, JSON.stringify(useSettings.getState()));
  } catch {
    // a full or forbidden store only means that the choice lasts until the page is closed
  }
}

const dark = window.matchMedia("(prefers-color-scheme: dark)");

export function resolvedTheme(theme: Theme): "light" | "dark" {
  if (theme !== "system") return theme;
  return dark.matches ? "dark" : "light";
}

/** Keeps the page's `data-theme` in step with the setting and the system. */
export function applyTheme(): void {
  const apply = () => {
    document.documentElement.dataset.theme = resolvedTheme(useSettings.getState().theme);
  };
  apply();
  useSettings.subscribe(apply);
  dark.addEventListener("change", apply);
}
