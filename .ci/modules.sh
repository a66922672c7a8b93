# Modules that carry much, but for bench/peers: tests each under the race detector.
set -euo pipefail
for mod in examples/*/go.mod examples/*/*/go.mod runtime/*/*/go.mod; do
  [[ -f $mod ]] || continue
  (
    cd "$(dirname "$mod")"
    echo "module $(go list -m)"
    go test -race -vet=off -shuffle=on ./...
  )
done
# What promtool says of a scrape and of the rules.
(cd runtime/inspect/prometheus && go test -count=1 -tags promtool -run Promtool .)
