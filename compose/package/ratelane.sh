#!/bin/sh
# The package's command: becomes one of the programs (exec), so that signals and exit codes are the
# program's own. It takes the Node of the PATH, or the one that came along where that is too old.
set -eu
package=$(dirname "$(readlink -f "$0")")/../..

usage='Usage: ratelane <program> [arguments]

Programs:
  worker          decide rate limits for Envoy; settings are environment variables
  control-plane   check rules, and serve them to workers
  client          ask a worker for one decision
  router          serve a folder of controllers over HTTP

ratelane <program> --help tells the rest; ratelane --version prints the version.
'

find_node() {
  for node in node "$package"/node_modules/node-linux-*/bin/node "$package"/../node-linux-*/bin/node; do
    version=$("$node" --version 2>/dev/null) || continue
    major=${version#v}
    if [ "${major%%.*}" -ge 24 ]; then return; fi
  done
  echo 'ratelane: Node >= 24 is needed, and none came along for this system: https://nodejs.org' >&2
  exit 1
}

program=${1-}
if [ $# -gt 0 ]; then shift; fi
case $program in
  worker)
    find_node
    # Half of what Node takes by itself on a large machine; more makes no decision cheaper.
    exec "$node" --max-semi-space-size=16 "$package/dist/worker/main.js" "$@"
    ;;
  control-plane)
    find_node
    exec "$node" "$package/dist/control-plane/main.js" "$@"
    ;;
  client)
    find_node
    exec "$node" "$package/dist/worker/client.js" "$@"
    ;;
  router)
    find_node
    exec "$node" "$package/dist/shared/router/main.js" "$@"
    ;;
  --version | -v)
    sed -n 's/^  "version": "\(.*\)",$/\1/p' "$package/package.json"
    ;;
  --help | -h | help)
    printf '%s' "$usage"
    ;;
  *)
    if [ -n "$program" ]; then echo "ratelane: there is no program '$program'" >&2; fi
    printf '%s' "$usage" >&2
    exit 2
    ;;
esac
