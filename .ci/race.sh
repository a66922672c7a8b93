# The tests under the race detector, in an order that a seed decides.
# SHUFFLE=<seed> repeats a run.
set -euo pipefail
. .ci/packages.sh
seed=${SHUFFLE:-$(date +%s)}
export GORACE="${GORACE:-} atexit_sleep_ms=100" # by default each package sleeps for a second when it ends
mapfile -t packages < <(go list "${packages[@]}" | grep -v "$unchanged")
echo "go test -race -shuffle=$seed"
bash .ci/again.sh race go test -race -vet=off -shuffle="$seed" -timeout 5m -- "${packages[@]}"
