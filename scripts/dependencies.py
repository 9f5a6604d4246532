"""Print the dependencies of pyproject.toml, one a line; with an argument, those of that extra."""

import sys
import tomllib
from pathlib import Path

project = tomllib.loads(Path("pyproject.toml").read_text())["project"]
wanted = project["optional-dependencies"][sys.argv[1]] if len(sys.argv) > 1 else project["dependencies"]
print("\n".join(wanted))
