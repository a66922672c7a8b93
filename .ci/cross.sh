# Vets, tests included, for every system and architecture, without cgo. That compiles all
# packages that others import; one program is linked besides, which has the assembly in it.
set -euo pipefail
for os in linux darwin windows; do
  for arch in amd64 arm64; do
    echo "$os/$arch"
    CGO_ENABLED=0 GOOS=$os GOARCH=$arch go vet ./...
    CGO_ENABLED=0 GOOS=$os GOARCH=$arch go build -o "$CI_TEMP/cross" ./bench
  done
done
CGO_ENABLED=0 GOOS=freebsd GOARCH=amd64 go build ./... # for the other Unix systems
