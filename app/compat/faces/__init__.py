"""One small module for each of ComfyUI's; the path below this folder is the module's name in a pack."""
