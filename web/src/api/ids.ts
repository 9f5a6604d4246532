// The server's ids of nodes, as boxes of the canvas.

/** "7:3" is inside the subgraph instance 7, "7.0.1" a part that node 7 was expanded to: both are shown on 7. */
export function hostOf(id: string): string {
  return id.split(/[:.]/)[0] ?? id;
}
