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
const useSystem = create<{ readonly isDark: boolean }>(() => ({ isDark: dark.matches }));
dark.addEventListener("change", () => useSystem.setState({ isDark: dark.matches }));

/** The theme that is shown: the chosen one, or that of the system. */
export function useTheme(): "light" | "dark" {
  const theme = useSettings((state) => state.theme);
  const isDark = useSystem((state) => state.isDark);
  return shownTheme(theme, isDark);
}

function shownTheme(theme: Theme, isDark: boolean): "light" | "dark" {
  return theme === "system" ? (isDark ? "dark" : "light") : theme;
}

/** Keeps the page's `data-theme` in step with the setting and the system. */
export function applyTheme(): void {
  const apply = () => {
    const shown = shownTheme(useSettings.getState().theme, useSystem.getState().isDark);
    document.documentElement.dataset.theme = shown;
  };
  apply();
  useSettings.subscribe(apply);
  useSystem.subscribe(apply);
}
