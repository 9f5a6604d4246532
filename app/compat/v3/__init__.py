"""ComfyUI's third style of nodes: what a schema is made of. The faces of comfy_api name it."""
