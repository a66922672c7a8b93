# Uses the library from a module of its own, with the commands that the README
# gives for it.
set -euo pipefail
repo=$PWD
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cp .ci/consumer/*.go "$dir"
cd "$dir"
go mod init example.com/consumer
go mod edit -require godat@v0.0.0 -replace "godat=$repo"
go mod tidy
go vet ./...
go test ./...
