# The linter, with the import rules, in each module of go.work but bench/peers.
set -euo pipefail
for mod in $(go list -m -f '{{.Dir}}' | grep -v '/bench/peers$'); do
  (cd "$mod" && golangci-lint run ./...)
done
