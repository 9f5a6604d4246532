// Ranks node definitions for a typed query: exact, then prefix, then word, then alias, then letters in order.

import type { Definitions, NodeDefinition } from "./definitions.ts";
import { areCompatible } from "./sockets.ts";
import { initialValues, inputsOf } from "./widgets.ts";

export interface SocketFilter {
  /** what the node to be added must have: an input that takes the type, or an output that gives it */
  readonly side: "input" | "output";
  readonly type: string;
}

const MAX_RESULTS = 60;

export function searchNodes(
  definitions: Definitions,
  query: string,
  filter: SocketFilter | null = null,
): NodeDefinition[] {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  return Object.values(definitions)
    .filter((definition) => filter === null || hasSocket(definition, filter))
    .map((definition) => ({
      definition,
      rank: rank(definition, words) + (filter ? looseness(definition, filter) : 0),
    }))
    .filter(({ rank: value }) => value < Number.POSITIVE_INFINITY)
    .sort((left, right) => left.rank - right.rank || compareNames(left.definition, right.definition))
    .slice(0, MAX_RESULTS)
    .map(({ definition }) => definition);
}

function compareNames(left: NodeDefinition, right: NodeDefinition): number {
  return left.displayName.localeCompare(right.displayName);
}

function rank(definition: NodeDefinition, words: readonly string[]): number {
  const penalty = (definition.isDeprecated ? 50 : 0) + (definition.isExperimental ? 5 : 0);
  const ranks = words.map((word) => wordRank(definition, word));
  const joined = words.length > 1 ? wordRank(definition, words.join(" ")) : Number.POSITIVE_INFINITY;
  return (
    Math.min(
      joined,
      ranks.reduce((sum, value) => sum + value, 0),
    ) + penalty
  );
}

function wordRank(definition: NodeDefinition, word: string): number {
  const name = definition.displayName.toLowerCase();
  const type = definition.type.toLowerCase();
  if (name === word || type === word) return 0;
  if (name.startsWith(word) || type.startsWith(word)) return 1 + name.length / 1000;
  if (wordsOf(definition).some((part) => part.startsWith(word))) return 10 + name.length / 1000;
  if (definition.aliases.some((alias) => alias.toLowerCase().includes(word))) return 20;
  if (name.includes(word) || type.includes(word)) return 30;
  if (definition.category.toLowerCase().includes(word)) return 40;
  return word.length > 2 && isSubsequence(word, type) ? 60 : Number.POSITIVE_INFINITY;
}

function wordsOf(definition: NodeDefinition): string[] {
  const spaced = `${definition.displayName} ${definition.type.replace(/([a-z])([A-Z])/g, "$1 $2")}`;
  return spaced.toLowerCase().split(/[^\p{L}\p{N}]+/u);
}

function isSubsequence(word: string, text: string): boolean {
  let at = 0;
  for (const letter of text) if (letter === word[at]) at++;
  return at === word.length;
}

function socketTypes(definition: NodeDefinition, side: SocketFilter["side"]): string[] {
  if (side === "output") return definition.outputs.map((output) => output.type);
  return inputsOf(definition, initialValues(definition)).map((input) => input.type);
}

function hasSocket(definition: NodeDefinition, filter: SocketFilter): boolean {
  return socketTypes(definition, filter.side).some((type) => areCompatible(type, filter.type));
}

/** Nodes that name the type come before those that take anything. */
function looseness(definition: NodeDefinition, filter: SocketFilter): number {
  return socketTypes(definition, filter.side).includes(filter.type) ? 0 : 100;
}
