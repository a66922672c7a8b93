# The tests under the race detector, in an order that a seed decides.
# SHUFFLE=<seed> repeats a run. The library, where goroutines meet without a lock, runs each time;
# HALF=0 leaves out what judges it in check, and HALF=1 leaves out the examples.
set -euo pipefail
. .ci/packages.sh
seed=${SHUFFLE:-$(date +%s)}
export GORACE="${GORACE:-} atexit_sleep_ms=100" # by default each package sleeps for a second when it ends
# The benchmark, the staged days and a volume's processes run in stage nocc alone: what they run is the library's and
# the volume's rooms', whose tests are here.
# The tests of the first ones wait for most of their time, so they begin beside those that compute.
waiting=(./examples/volume/node ./runtime/rpc)
mapfile -t packages < <({ go list "${waiting[@]}"; go list "${packages[@]}" "${carriers[@]}" ./check/world/{lives,network}; } | grep -v "$unchanged" | grep -v '^godat/bench\|/check/days$\|/examples/volume$' | awk '!seen[$0]++')
left_out=('^godat/(check|runtime/inspect/prometheus)(/|$)' '^godat/examples(/|$)')
if [[ ${HALF:-} ]]; then mapfile -t packages < <(printf '%s\n' "${packages[@]}" | grep -vE "${left_out[HALF]}"); fi
echo "go test -race -shuffle=$seed"
bash .ci/again.sh race go test -race -vet=off -shuffle="$seed" -timeout 20m -- "${packages[@]}"
