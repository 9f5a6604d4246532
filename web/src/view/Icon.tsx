// Line icons on a 16 pixel grid, drawn in the colour of the text around them.

const PATHS = {
  play: "M5 3.5v9l7-4.5z",
  stop: "M4.5 4.5h7v7h-7z",
  plus: "M8 3.5v9M3.5 8h9",
  undo: "M6 4 3 7l3 3M3.2 7H9a3.5 3.5 0 0 1 0 7H7.5",
  redo: "m10 4 3 3-3 3m2.8-3H7a3.5 3.5 0 0 0 0 7h1.5",
  sun: "M8 5.2a2.8 2.8 0 1 0 0 5.6 2.8 2.8 0 0 0 0-5.6ZM8 1.5v1.3M8 13.2v1.3M1.5 8h1.3M13.2 8h1.3M3.4 3.4l.9.9M11.7 11.7l.9.9M12.6 3.4l-.9.9M4.3 11.7l-.9.9",
  moon: "M13 9.6A5.5 5.5 0 0 1 6.4 3 5.5 5.5 0 1 0 13 9.6Z",
  screen: "M2.5 3.5h11v7h-11zM6 13h4M8 10.5V13",
  close: "m4.5 4.5 7 7m0-7-7 7",
  chevron: "m5 6.5 3 3 3-3",
  queue: "M3 4.5h10M3 8h10M3 11.5h6",
  clock: "M8 2.5a5.5 5.5 0 1 0 0 11 5.5 5.5 0 0 0 0-11ZM8 5v3.2l2 1.3",
  open: "M2.5 12.5v-9h4l1.3 1.6h5.7v7.4z",
  save: "M8 2.5v7m0 0L5.2 6.8M8 9.5l2.8-2.7M3 12.8h10",
  trash: "M3 4.5h10M6.2 4.5V3h3.6v1.5M4.5 4.5l.6 8.5h5.8l.6-8.5",
  upload: "M8 11V3.5m0 0L5.2 6.3M8 3.5l2.8 2.8M3 12.8h10",
  alert: "M8 2.8 14 13H2zM8 6.5v3M8 11.3v.2",
  dice: "M3 3h10v10H3zM5.7 5.7h.1M10.2 5.7h.1M8 8h.1M5.7 10.2h.1M10.2 10.2h.1",
  grid: "M3 3h4v4H3zM9 3h4v4H9zM3 9h4v4H3zM9 9h4v4H9z",
  fit: "M3 6V3h3M10 3h3v3M13 10v3h-3M6 13H3v-3",
  keyboard: "M1.8 4.5h12.4v7H1.8zM4.3 7h.1M6.8 7h.1M9.2 7h.1M11.7 7h.1M5 9.3h6",
  file: "M4 2.5h5l3 3v8H4zM9 2.5v3h3",
  check: "m3.5 8.5 3 3 6-7",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name }: { readonly name: IconName }) {
  return (
    <svg className="icon" viewBox="0 0 16 16" width="16" height="16" aria-hidden="true">
      <path d={PATHS[name]} />
    </svg>
  );
}
