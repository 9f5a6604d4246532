// A colour for each socket type: chosen hues for the common ones, a stable one out of the name for the rest.
// Lightness and strength come from the theme.

const HUES: Readonly<Record<string, number>> = {
  MODEL: 292,
  CLIP: 88,
  VAE: 18,
  CONDITIONING: 58,
  LATENT: 345,
  IMAGE: 248,
  MASK: 152,
  CONTROL_NET: 175,
  LLM: 275,
  VLM: 265,
  CHAT: 318,
  STRING: 135,
  TEXT: 135,
  INT: 215,
  FLOAT: 195,
  BOOLEAN: 30,
  COMBO: 110,
  SIGMAS: 120,
  NOISE: 230,
  SAMPLER: 75,
  GUIDER: 5,
};

export function socketColor(type: string): string {
  const first = type.split(",")[0] ?? "";
  if (first === "*" || first === "") return "var(--socket-any)";
  return `oklch(var(--socket-lightness) var(--socket-chroma) ${HUES[first] ?? hueOf(first)})`;
}

function hueOf(name: string): number {
  let hash = 7;
  for (const letter of name) hash = (hash * 31 + letter.charCodeAt(0)) % 3600;
  return hash % 360;
}
