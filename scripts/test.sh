#!/usr/bin/env bash
# All that a change must pass. Each test process has one thread for torch, so that two of them do not fight.
set -euo pipefail
cd "$(dirname "$0")/.."
bin=${VENV:-.venv}/bin
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-1} HF_HUB_OFFLINE=1 TRANSFORMERS_VERBOSITY=error
VENV=${VENV:-.venv} scripts/check.sh
"$bin/python" -m pytest -q tests/pure
"$bin/python" -m pytest -q tests/cpu
(cd web && npm test --silent)
"$bin/python" -m pytest -q tests/web
