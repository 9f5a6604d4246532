// The few settings, and the list of shortcuts.

import { change, type Theme, useSettings } from "../state/settings.ts";
import { ACTIONS, type Action } from "./actions.ts";
import { Dialog } from "./Dialog.tsx";
import { closeDialog, useDialogs } from "./dialogs.ts";
import { written } from "./keys.ts";

export function Dialogs() {
  const open = useDialogs((state) => state.open);
  if (open === "settings") return <Settings />;
  return open === "shortcuts" ? <Shortcuts /> : null;
}

const THEMES: ReadonlyArray<readonly [Theme, string]> = [
  ["system", "As the system"],
  ["light", "Light"],
  ["dark", "Dark"],
];

function Settings() {
  const settings = useSettings();
  return (
    <Dialog title="Settings" onClose={closeDialog}>
      <label className="setting">
        <span>Appearance</span>
        <select value={settings.theme} onChange={(event) => change({ theme: event.target.value as Theme })}>
          {THEMES.map(([theme, word]) => (
            <option key={theme} value={theme}>
              {word}
            </option>
          ))}
        </select>
      </label>
      <Check
        label="Show the overview"
        isOn={settings.hasMinimap}
        onChange={(hasMinimap) => change({ hasMinimap })}
      />
      <Check
        label="Snap nodes to the grid"
        isOn={settings.snapsToGrid}
        onChange={(snapsToGrid) => change({ snapsToGrid })}
      />
    </Dialog>
  );
}

interface CheckProps {
  readonly label: string;
  readonly isOn: boolean;
  readonly onChange: (isOn: boolean) => void;
}

function Check({ label, isOn, onChange }: CheckProps) {
  return (
    <label className="setting">
      <span>{label}</span>
      <input type="checkbox" checked={isOn} onChange={(event) => onChange(event.target.checked)} />
    </label>
  );
}

const GESTURES: ReadonlyArray<readonly [string, string]> = [
  ["Copy, cut, paste", "Ctrl+C, X, V"],
  ["Search for a node", "double-click"],
  ["Select an area", "Shift+drag"],
  ["Move the view", "drag"],
  ["Rename a node", "double-click its title"],
];

function Shortcuts() {
  return (
    <Dialog title="Shortcuts" onClose={closeDialog}>
      <dl className="shortcuts">
        {Object.values(ACTIONS).map((action: Action) => (
          <div key={action.label}>
            <dt>{action.label}</dt>
            <dd>
              {action.keys.map((keys) => (
                <kbd key={keys}>{written(keys)}</kbd>
              ))}
            </dd>
          </div>
        ))}
        {GESTURES.map(([label, gesture]) => (
          <div key={label}>
            <dt>{label}</dt>
            <dd>
              <kbd>{gesture}</kbd>
            </dd>
          </div>
        ))}
      </dl>
    </Dialog>
  );
}
