"""`comfy_extras`: its modules of nodes, as far as this program has such nodes."""
