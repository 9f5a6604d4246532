#!/usr/bin/env bash
# All that a change must pass. Each test process has one thread for torch, so that two of them do not fight.
set -euo pipefail
cd "$(dirname "$0")/.."
export VENV=${VENV:-.venv}
bin=$VENV/bin
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-1} HF_HUB_OFFLINE=1 TRANSFORMERS_VERBOSITY=error
scripts/check.sh
"$bin/python" -m pytest -q tests/pure
"$bin/python" -m pytest -q -n 2 --dist loadfile --durations 5 tests/cpu
PYTHON=$(realpath "$bin")/python scripts/npm.sh test --silent
"$bin/python" -m pytest -q tests/web
