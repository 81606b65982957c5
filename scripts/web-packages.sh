#!/usr/bin/env bash
# The packages of web/package-lock.json in web/node_modules, unless they are there already.
set -euo pipefail
cd "$(dirname "$0")/../web"
wanted=$(sha256sum package-lock.json | cut -c1-16)
[ "$(cat node_modules/.lastmile 2>/dev/null)" = "$wanted" ] && exit 0
printf 'web: installing packages into web/node_modules\n' >&2
npm ci --no-fund --no-audit --loglevel=error >&2
printf '%s\n' "$wanted" >node_modules/.lastmile
