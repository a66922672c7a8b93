# Each go.mod says what its module uses, and the library builds without the workspace, as it does for others.
set -euo pipefail
for mod in $(go list -m -f '{{.Dir}}'); do
  (cd "$mod" && GOWORK=off go mod tidy -diff)
done
GOWORK=off go build ./...
