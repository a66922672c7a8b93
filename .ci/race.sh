# The tests under the race detector, in an order that a seed decides.
# SHUFFLE=<seed> repeats a run.
set -euo pipefail
seed=${SHUFFLE:-$(date +%s)}
echo "go test -race -shuffle=$seed"
bash .ci/again.sh race go test -race -shuffle="$seed" -timeout 10m -- ./...
