#!/usr/bin/env bash
# Runs this package's tests on real verbs devices: soft-RoCE and soft-iWARP, in the
# guest that hw/hwtest/guest makes. It fails, never skips, when something is missing,
# and when fewer cases ran than testdata/cases.txt says. What is to be installed,
# hw/hwtest/guest/install.sh installs.
#
#   hw/ibv/test-guest.sh [MODE] [DEVICE...]
#
# MODE is plain (all tests, the default), race (the contract under the race
# detector), cgocheck (the contract with all checks of what C is given) or asan (the
# contract with the shim address-sanitised). DEVICEs are rxe0 and siw0.
set -euo pipefail
cd "$(dirname "$0")/../.."

mode=${1:-plain}
shift || true
devices=("$@")
if ((${#devices[@]} == 0)); then devices=(rxe0 siw0); fi

# The bound of one device's run. The slowest took 4 minutes on a quiet machine.
limit=${GODAT_GUEST_LIMIT:-12m}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

run='.'
build=(go test -c -tags guest)
case $mode in
  plain) ;;
  race) build+=(-race) run='^TestContract$' ;;
  cgocheck) export GOEXPERIMENT=cgocheck2 && run='^TestContract$' ;;
  asan) build+=(-asan) run='^TestContract$' ;;
  *) echo "unknown mode $mode" >&2 && exit 2 ;;
esac

echo "abi.h against the distribution's headers"
cc -fsyntax-only -Wall -Werror -Ihw/ibv hw/ibv/testdata/abi_check.c

CGO_ENABLED=1 "${build[@]}" -o "$work/ibv.test" ./hw/ibv
go build -o "$work/guest" ./hw/hwtest/guest/cmd/guest

# expected DEVICE: how many cases ran when this was committed.
expected() {
  awk -v mode="$mode" -v device="$1" '$1 == mode && $2 == device { print $3 }' hw/ibv/testdata/cases.txt
}

failed=0
summary=''
for device in "${devices[@]}"; do
  log=$work/$device.log
  status=0
  "$work/guest" -device "$device" -timeout "$limit" -- \
    "$work/ibv.test" -test.v -test.run "$run" -test.timeout "$limit" >"$log" || status=$?
  passed=$(grep -cE '^ *--- PASS' "$log" || true)
  bad=$(grep -cE '^ *--- FAIL' "$log" || true)
  skipped=$(grep -cE '^ *--- SKIP' "$log" || true)
  want=$(expected "$device")
  line="$mode on $device: $passed cases passed, $bad failed, ${want:-?} expected"
  if ((status || bad || skipped)) || [[ -z $want ]] || ((passed < want)); then
    failed=1
    grep -vE '^ *(=== (RUN|PAUSE|CONT)|--- PASS)' "$log" | cut -c1-400 | tail -n 200
    line+=": FAILED (exit status $status)"
  fi
  echo "$line"
  summary+=$line$'\n'
done
printf '\n%s' "$summary"
exit $failed
