# The linter, with the import rules and all that go vet looks for, in each module of go.work but bench/peers,
# which is vetted.
set -euo pipefail
for mod in $(go list -m -f '{{.Dir}}' | grep -v '/bench/peers$'); do
  (cd "$mod" && golangci-lint run ./...)
done
(cd bench/peers && go vet ./...)
