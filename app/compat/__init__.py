"""ComfyUI's names for packs: an import hook, and thin faces over what this program has."""
