"""All families. A list, because the first match wins; a new family is one file and one line here."""

from __future__ import annotations

from runtime.diffusion.families import flux, sd, sd3, z_image

ARCHITECTURES = (*sd.ARCHITECTURES, *sd3.ARCHITECTURES, *flux.ARCHITECTURES, *z_image.ARCHITECTURES)
