// Names of inputs as people read them.

export function wordsOf(name: string): string {
  return name.replace(/^.*\./, "").replaceAll("_", " ");
}
