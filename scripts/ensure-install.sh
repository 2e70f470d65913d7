#!/bin/sh
# Installs the packages when package-lock.json is newer than the last install from here, so that `npm start` and
# `npm test` work from a fresh clone. npm runs scripts on node_modules/.bin/node where that exists; an install
# under an older Node skips packages that need a newer one without a word, so a newer one is borrowed for it.
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
  echo "Node.js 22.18 or newer is required, this is $(node --version)" >&2
  exit 1
fi
