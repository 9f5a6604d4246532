#!/usr/bin/env bash
# Lint, types and import fences: everything that reads the code without running it.
set -euo pipefail
cd "$(dirname "$0")/.."
bin=${VENV:-.venv}/bin
"$bin/ruff" format --check .
"$bin/ruff" check .
"$bin/mypy"
PYTHONPATH=.:kernels "$bin/lint-imports" --no-cache
