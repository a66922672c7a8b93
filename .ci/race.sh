# The tests under the race detector, in an order that a seed decides.
# SHUFFLE=<seed> repeats a run.
set -euo pipefail
seed=${SHUFFLE:-$(date +%s)}
echo "go test -race -shuffle=$seed ./..."
status=0
bash .ci/gotest.sh "$CI_TEMP/race.log" go test -race -shuffle="$seed" -timeout 10m ./... >"$CI_TEMP/race.out" || status=$?
cat "$CI_TEMP/race.out"
# The run ends with these lines once more.
grep -E '^(ok  |FAIL)|packages ok' "$CI_TEMP/race.out" >"$CI_TEMP/race.summary" || true
exit "$status"
