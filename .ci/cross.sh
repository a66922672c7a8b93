# Vets, tests included, for each system and each architecture, without cgo: a file is chosen by
# its system or by its architecture, and linux/amd64 is what all other stages run. For the pairs that
# are left the library is compiled. One program is linked besides, which has the assembly in it.
set -euo pipefail
. .ci/packages.sh
whole=(linux/arm64 darwin/arm64 windows/amd64)
export CGO_ENABLED=0
for target in "${whole[@]}"; do
  export GOOS=${target%/*} GOARCH=${target#*/}
  if [[ -z ${TURN:-} || $target == "${whole[TURN % ${#whole[@]}]}" ]]; then
    echo "$target, whole"
    go vet "${packages[@]}"
    go build -o "$CI_TEMP/cross" ./bench
  else
    echo "$target"
    go build ./...
  fi
done
for target in darwin/amd64 windows/arm64; do
  echo "$target"
  GOOS=${target%/*} GOARCH=${target#*/} go build ./...
done
GOOS=freebsd GOARCH=amd64 go build ./... # for the other Unix systems
# The modules that carry much have words of 32 bits as well; narrow.sh vets all others for them.
echo "linux/386, the modules that carry much"
for mod in examples/*/go.mod examples/*/*/go.mod runtime/*/*/go.mod; do
  [[ -f $mod ]] || continue
  (cd "$(dirname "$mod")" && GOOS=linux GOARCH=386 go vet ./...)
done
