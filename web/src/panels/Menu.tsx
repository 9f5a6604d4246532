// A button that opens a list of things to do.

import { type KeyboardEvent, type ReactNode, useEffect, useRef, useState } from "react";
import { Icon } from "../view/Icon.tsx";

interface Props {
  readonly label: string;
  readonly onOpen?: () => void;
  readonly children: ReactNode;
}

export function Menu({ label, onOpen, children }: Props) {
  const [isOpen, setIsOpen] = useState(false);
  const root = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (!isOpen) return;
    const closeOutside = (event: PointerEvent) => {
      if (!root.current?.contains(event.target as Node)) setIsOpen(false);
    };
    window.addEventListener("pointerdown", closeOutside);
    return () => window.removeEventListener("pointerdown", closeOutside);
  }, [isOpen]);
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === "Escape") setIsOpen(false);
    if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
    event.preventDefault();
    moveFocus(root.current, event.key === "ArrowDown" ? 1 : -1);
  };
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: keys of the buttons inside come by here
    <div className="menu" ref={root} onKeyDown={onKeyDown}>
      <button
        type="button"
        className="bare"
        aria-haspopup="menu"
        aria-expanded={isOpen}
        onClick={() => {
          if (!isOpen) onOpen?.();
          setIsOpen(!isOpen);
        }}
      >
        {label} <Icon name="chevron" />
      </button>
      {isOpen && (
        // biome-ignore lint/a11y/useKeyWithClickEvents: choosing an item by key clicks it
        <div className="menu-list" role="menu" onClick={() => setIsOpen(false)}>
          {children}
        </div>
      )}
    </div>
  );
}

function moveFocus(root: HTMLElement | null, by: number): void {
  const items = [...(root?.querySelectorAll<HTMLElement>("[role=menuitem]") ?? [])];
  const at = items.indexOf(document.activeElement as HTMLElement);
  items[(at + by + items.length) % items.length]?.focus();
}

interface ItemProps {
  readonly label: string;
  readonly keys?: string | undefined;
  readonly onChoose: () => void;
}

export function MenuItem({ label, keys, onChoose }: ItemProps) {
  return (
    <button type="button" role="menuitem" onClick={onChoose}>
      <span>{label}</span>
      {keys && <kbd>{keys}</kbd>}
    </button>
  );
}
