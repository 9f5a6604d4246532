// The workflow as frozen records. Knows no definitions and no file format; every edit makes new records.

import type { Json, JsonObject } from "./json.ts";

export const NodeMode = { always: 0, mute: 2, bypass: 4 } as const;

export interface SavedSlot {
  readonly name: string;
  readonly type: string;
  readonly label: string | null;
  /** the widget that the slot stands for */
  readonly widget: string | null;
}

export interface GraphNode {
  readonly id: string;
  readonly type: string;
  readonly title: string | null;
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
  /** ComfyUI's numbers; 1 and 3 act like 0 and are kept as they came */
  readonly mode: number;
  readonly isCollapsed: boolean;
  /** widget values by widget name; empty where the type is unknown */
  readonly values: Readonly<Record<string, Json>>;
  readonly inputs: readonly SavedSlot[];
  readonly outputs: readonly SavedSlot[];
  /** what else the file says of the node, kept for the way back */
  readonly rest: JsonObject;
}

export interface Link {
  readonly id: string;
  readonly source: string;
  readonly sourceSlot: number;
  readonly target: string;
  readonly targetInput: string;
  readonly type: string;
  /** native reroute that the link passes; kept for other editors */
  readonly parentId: number | null;
}

export interface Group {
  readonly id: string;
  readonly title: string;
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
  readonly color: string | null;
  readonly rest: JsonObject;
}

export interface WorkflowDocument {
  readonly id: string;
  readonly nodes: Readonly<Record<string, GraphNode>>;
  readonly links: Readonly<Record<string, Link>>;
  readonly groups: Readonly<Record<string, Group>>;
  readonly lastNodeId: number;
  readonly lastLinkId: number;
  readonly rest: JsonObject;
}

export function emptyDocument(id: string): WorkflowDocument {
  return { id, nodes: {}, links: {}, groups: {}, lastNodeId: 0, lastLinkId: 0, rest: {} };
}

export function linkInto(document: WorkflowDocument, target: string, input: string): Link | null {
  for (const link of Object.values(document.links)) {
    if (link.target === target && link.targetInput === input) return link;
  }
  return null;
}

export function linksOf(document: WorkflowDocument, node: string): Link[] {
  return Object.values(document.links).filter((link) => link.source === node || link.target === node);
}
