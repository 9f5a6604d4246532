#!/usr/bin/env bash
# Builds the editor into web/dist.
set -euo pipefail
cd "$(dirname "$0")"
./npm.sh ci --ignore-scripts --no-audit --no-fund --loglevel=error
./npm.sh run --silent build -- --logLevel warn
