"""Each figure of the README as a command that prints it: `python -m bench.NAME` in the project folder."""

import sys
from pathlib import Path

# kernels/ is a source root, not a package
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "kernels"))
