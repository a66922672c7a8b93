# The tests under the race detector, in an order that a seed decides.
# SHUFFLE=<seed> repeats a run.
set -euo pipefail
seed=${SHUFFLE:-$(date +%s)}
out=$CI_TEMP/race.out

# under runs packages; what it prints goes to $out, too.
under() {
  local status=0
  echo "go test -race -shuffle=$seed $*"
  bash .ci/gotest.sh "$CI_TEMP/race.log" go test -race -shuffle="$seed" -timeout 10m "$@" >"$out" || status=$?
  cat "$out"
  return "$status"
}

status=0
under ./... || status=$?
# The run ends with these lines once more.
grep -E '^(ok  |FAIL)|packages ok' "$out" >"$CI_TEMP/race.summary" || true
if ((status)); then
  # What depends on a moment of the machine's passes a second time, and is to be
  # looked into; what is broken fails again.
  mapfile -t failed < <(awk '$1 == "FAIL" && $2 ~ "/" { print $2 }' "$out" | sort -u)
  if ((${#failed[@]} == 0 || ${#failed[@]} > 2)) || grep -q 'DATA RACE' "$out"; then exit "$status"; fi
  status=0
  under "${failed[@]}" || status=$?
  echo "RAN TWICE, status $status: ${failed[*]}" | tee -a "$CI_TEMP/race.summary"
fi
exit "$status"
