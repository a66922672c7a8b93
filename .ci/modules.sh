# Modules that carry much, but for bench/peers: vets each for words of 32 bits, lints and tests it.
set -euo pipefail
for mod in examples/*/go.mod examples/*/*/go.mod runtime/*/*/go.mod; do
  [[ -f $mod ]] || continue
  (
    cd "$(dirname "$mod")"
    echo "module $(go list -m)"
    GOARCH=386 CGO_ENABLED=0 go vet ./...
    golangci-lint run ./...
    go test -race -shuffle=on ./...
  )
done
# What promtool says of a scrape and of the rules.
(cd runtime/inspect/prometheus && go test -count=1 -tags promtool -run Promtool .)
# Three replicas of a volume, with crashes, power cuts, elections and rebuilds in any order.
cd examples/volume
go test -count=1 ./replica -run '^TestReplicasHaveAllThatWasAcknowledged$' -rapid.checks=5000 -rapid.steps=80
