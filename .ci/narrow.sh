# Systems whose words have 32 bits: everything is vetted for 386 and arm, and the
# tests run as 386, where a 64-bit atomic that is not aligned panics as on arm.
# The kernel runs such programs itself, or qemu-i386-static does.
set -euo pipefail
export CGO_ENABLED=0
for arch in 386 arm; do
  echo "linux/$arch"
  GOOS=linux GOARCH=$arch go vet ./...
done

export GOOS=linux GOARCH=386
runner=()
probe=$CI_TEMP/narrow.probe
go test -c -o "$probe" ./internal/owner
if ! "$probe" >/dev/null 2>&1; then
  if ! command -v qemu-i386-static; then
    echo "neither this kernel nor qemu-i386-static runs 32-bit programs"
    exit 1
  fi
  runner=(-exec qemu-i386-static)
fi

# The mutations are text; the other packages all run.
mapfile -t packages < <(go list ./... | grep -v /check/mutate)
bash .ci/gotest.sh "$CI_TEMP/narrow.log" go test -short "${runner[@]}" "${packages[@]}"
