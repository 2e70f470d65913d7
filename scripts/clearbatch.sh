#!/bin/sh
# Runs the command `clearbatch` from the sources, also in a fresh clone on an older Node.js. Results alone go to stdout.
set -e
here="$PWD"
cd "$(dirname "$0")/.."
sh scripts/ensure-install.sh >&2
root="$PWD"
PATH="$root/node_modules/.bin:$PATH"
cd "${INIT_CWD:-$here}"
exec node "$root/cli/main.ts" "$@"
