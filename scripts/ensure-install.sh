#!/bin/sh
# Installs the packages if package-lock.json is newer than the last install by this script, so that `npm start` and
# `npm test` work from a fresh clone. npm runs scripts on node_modules/.bin/node if that exists. An install under an
# older Node.js silently skips packages that need a newer one, so it runs under a newer Node.js from the `node` package.
set -e
cd "$(dirname "$0")/.."

stamp=node_modules/.installed
if [ ! -f "$stamp" ] || [ package-lock.json -nt "$stamp" ]; then
  echo 'Installing packages (the first time, or package-lock.json has changed)'
  if node scripts/node-is-recent.cjs; then
    npm install --no-save --no-progress
  else
    npx --yes -p node@24 -- npm install --no-save --no-progress
  fi
  touch "$stamp"
fi

PATH="$PWD/node_modules/.bin:$PATH"
if ! node scripts/node-is-recent.cjs; then
  echo "Node.js 22.18 or newer is required; found $(node --version)" >&2
  exit 1
fi
