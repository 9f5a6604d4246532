// Builds documents for tests by the editor's own commands, and checks what must hold of every document.

import { expect } from "vitest";
import { addNode, type Command, connect, setValue } from "../src/graph/commands.ts";
import type { Json } from "../src/graph/json.ts";
import { emptyDocument, type WorkflowDocument } from "../src/graph/records.ts";
import { inputSockets, outputSockets } from "../src/graph/sockets.ts";
import { DEFINITIONS } from "./definitions.ts";

export function after(document: WorkflowDocument, ...commands: Command[]): WorkflowDocument {
  return commands.reduce((current, command) => command.apply(current, DEFINITIONS), document);
}

/** Nodes of the given types, with ids from "1" on. */
export function withNodes(...types: string[]): WorkflowDocument {
  return after(emptyDocument("test"), ...types.map((type, index) => addNode(type, { x: index * 300, y: 0 })));
}

/** `link("1:0", "2.clip")` ties output 0 of node 1 to the input of node 2. */
export function link(from: string, to: string): Command {
  const [source = "", slot = "0"] = from.split(":");
  const [target = "", targetInput = ""] = to.split(/\.(.*)/);
  return connect({ source, sourceSlot: Number(slot), target, targetInput });
}

export function value(id: string, name: string, given: Json): Command {
  return setValue(id, name, given);
}

/** Loader, two encoders' worth of parts, sampler, decoder and saver, connected. */
export function pictureGraph(): WorkflowDocument {
  return after(
    withNodes("Loader", "Encode", "Empty", "Sampler", "Decode", "Save"),
    link("1:0", "4.model"),
    link("1:1", "2.clip"),
    link("2:0", "4.positive"),
    link("3:0", "4.latent"),
    link("4:0", "5.samples"),
    link("1:2", "5.vae"),
    link("5:0", "6.images"),
    value("2", "text", "a whale"),
  );
}

/** Links join sockets that exist, one to an input, and ids lie below the counters. */
export function check(document: WorkflowDocument): void {
  const taken = new Set<string>();
  for (const [id, item] of Object.entries(document.links)) {
    expect(item.id).toBe(id);
    const source = document.nodes[item.source];
    const target = document.nodes[item.target];
    if (!source || !target) throw new Error(`link ${id} has a loose end`);
    expect(outputSockets(source, DEFINITIONS)[item.sourceSlot]).toBeDefined();
    expect(inputSockets(target, DEFINITIONS).some((input) => input.name === item.targetInput)).toBe(true);
    const place = `${item.target} ${item.targetInput}`;
    expect(taken.has(place)).toBe(false);
    taken.add(place);
    expect(Number(id)).toBeLessThanOrEqual(document.lastLinkId);
  }
  for (const [id, node] of Object.entries(document.nodes)) {
    expect(node.id).toBe(id);
    expect(Number(id)).toBeLessThanOrEqual(document.lastNodeId);
  }
}
