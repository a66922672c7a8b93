# Modules of their own below the examples, which godat does not require: builds, vets, lints and
# tests each.
set -euo pipefail
for mod in examples/*/go.mod examples/*/*/go.mod runtime/*/*/go.mod; do
  [[ -f $mod ]] || continue
  (
    cd "$(dirname "$mod")"
    echo "module $(go list -m)"
    go mod tidy -diff
    go vet ./...
    golangci-lint run ./...
    go test -race -shuffle=on ./...
  )
done
