# Builds and vets, tests included, for every system and architecture, without cgo.
set -euo pipefail
for os in linux darwin windows; do
  for arch in amd64 arm64; do
    echo "$os/$arch"
    CGO_ENABLED=0 GOOS=$os GOARCH=$arch go build ./...
    CGO_ENABLED=0 GOOS=$os GOARCH=$arch go vet ./...
  done
done
CGO_ENABLED=0 GOOS=freebsd GOARCH=amd64 go build ./... # for the other Unix systems
