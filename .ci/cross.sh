# Vets, tests included, for each system and each architecture, without cgo: a file is chosen by
# its system or by its architecture, and linux/amd64 is what all other stages run. For the pairs that
# are left the library is compiled. One program is linked besides, which has the assembly in it.
# With TURN, a number, one pair of each list has its turn.
set -euo pipefail
. .ci/packages.sh
whole=(linux/arm64 darwin/arm64 windows/amd64)
library=(darwin/amd64 windows/arm64 freebsd/amd64) # freebsd stands for the other Unix systems
if [[ ${TURN:-} ]]; then
  whole=("${whole[TURN % 3]}")
  library=("${library[TURN % 3]}")
fi
export CGO_ENABLED=0
for target in "${whole[@]}"; do
  echo "$target, whole"
  export GOOS=${target%/*} GOARCH=${target#*/}
  go vet "${packages[@]}"
  go build -o "$CI_TEMP/cross" ./bench
done
for target in "${library[@]}"; do
  echo "$target"
  GOOS=${target%/*} GOARCH=${target#*/} go build ./...
done
# The modules that carry much have words of 32 bits as well; narrow.sh vets all others for them.
echo "linux/386, the modules that carry much"
for mod in examples/*/go.mod examples/*/*/go.mod runtime/*/*/go.mod; do
  [[ -f $mod ]] || continue
  (cd "$(dirname "$mod")" && GOOS=linux GOARCH=386 go vet ./...)
done
