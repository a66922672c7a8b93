# The tests under the race detector, in an order that a seed decides.
# SHUFFLE=<seed> repeats a run.
set -euo pipefail
. .ci/packages.sh
seed=${SHUFFLE:-$(date +%s)}
export GORACE="${GORACE:-} atexit_sleep_ms=100" # by default each package sleeps for a second when it ends
# The benchmark, the staged days and a volume's processes run in stage nocc alone: what they run is the library's and
# the volume's rooms', whose tests are here.
# The tests of the first ones wait for most of their time, so they begin beside those that compute.
waiting=(./examples/volume/node ./runtime/rpc)
mapfile -t packages < <({ go list "${waiting[@]}"; go list "${packages[@]}" "${carriers[@]}" ./check/world/{lives,network}; } | grep -v "$unchanged" | grep -v '^godat/bench\|/check/days$\|/examples/volume$' | awk '!seen[$0]++')
echo "go test -race -shuffle=$seed"
bash .ci/again.sh race go test -race -vet=off -shuffle="$seed" -timeout 20m -- "${packages[@]}"
