#!/usr/bin/env bash
# Runs this package's tests on the kernel's soft-RoCE and soft-iWARP devices, in the
# guest that package check/guest boots.
#
#   hw/ibv/test-guest.sh [MODE] [DEVICE...]
#
# DEVICE is rxe0 or siw0; without one, the script runs both. Each device has a guest of its
# own, beside the other's. MODE is one of:
#   plain     everything (the default): the contract's suite, the tests of verbs' own
#             features, DAT's conformance suite, the tests of byte streams with
#             nettest.TestConn, those of calls whose server is ended under 40 clients
#             and of calls with files, examples/rping and examples/dattest against the C programs
#             rping, dapltest, dtestcm, dtestsrq and dtestx, and on soft-RoCE examples/rdmaping against those of
#             ibverbs-utils and perftest, both as the server and as the client,
#             examples/doctor as root and as nobody, and examples/blockstore between two processes
#   provider  of that, the contract's suite and the tests of verbs' own features
#   dat       of that, DAT's conformance suite
#   above     of that, what the two leave
#   race      the contract's suite under the race detector
#   cgocheck  the contract's suite with the Go runtime's checks of what C code gets
#   asan      the contract's suite with the C half address-sanitised
#
# The script skips nothing. It fails when a program is missing, when a test fails or is
# skipped, and when fewer cases passed than testdata/cases.txt says. It exits with 123
# when the guest's kernel failed or did not boot, and no test failed.
#
# Environment: GODAT_GUEST_KILLS is how many peers the tests kill (3), GODAT_GUEST_BUSY
# is how many processes compute beside the tests (0), and GODAT_GUEST_LIMIT is the time
# limit of one device's run in minutes (25). check/guest/install.sh installs what the
# script needs.
set -euo pipefail
cd "$(dirname "$0")/../.."

mode=${1:-plain}
shift || true
devices=("$@")
if ((${#devices[@]} == 0)); then devices=(rxe0 siw0); fi

# A run takes 8 to 10 minutes on a busy machine.
limit=${GODAT_GUEST_LIMIT:-25}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

run='.'
build=(go test -c -tags guest)
case $mode in
  plain | provider | dat | above) ;;
  race) build+=(-race) run='^TestContract$' ;;
  cgocheck) export GOEXPERIMENT=cgocheck2 && run='^TestContract$' ;;
  asan) build+=(-asan) run='^TestContract$' ;;
  *) echo "unknown mode $mode" >&2 && exit 2 ;;
esac

export CGO_ENABLED=1
echo "abi.h against the distribution's headers"
cc -fsyntax-only -Wall -Werror -Ihw/ibv hw/ibv/testdata/abi_check.c

echo "what a pair gives the verbs library against what ibv_rc_pingpong gives it"
cc -Wall -Werror -Ihw/ibv -o "$work/pair_check" hw/ibv/testdata/pair_check.c hw/ibv/shim_pair.c
"$work/pair_check"

"${build[@]}" -o "$work/ibv.test" ./hw/ibv
go build -o "$work/guest" ./check/guest/cmd/guest
cc -Wall -Werror -o "$work/rejecter" check/guest/testdata/rejecter.c -lrdmacm -libverbs
case $mode in plain | dat) "${build[@]}" -o "$work/conformance.test" ./check/conformance ;; esac
if [[ $mode == plain || $mode == above ]]; then
  command -v rping >/dev/null || { echo "the C program rping is missing: install rdmacm-utils" >&2; exit 1; }
  command -v dapltest >/dev/null || { echo "the C program dapltest is missing: install dapl2-utils and libdapl2" >&2; exit 1; }
  command -v ib_send_bw >/dev/null || { echo "the C program ib_send_bw is missing: install perftest" >&2; exit 1; }
  command -v ibv_rc_pingpong >/dev/null || { echo "the C program ibv_rc_pingpong is missing: install ibverbs-utils" >&2; exit 1; }
  "${build[@]}" -o "$work/stream.test" ./runtime/stream
  "${build[@]}" -o "$work/rpc.test" ./runtime/rpc
  "${build[@]}" -o "$work/rping.test" ./examples/rping
  "${build[@]}" -o "$work/rdmaping.test" ./examples/rdmaping
  "${build[@]}" -o "$work/dattest.test" ./examples/dattest
  "${build[@]}" -o "$work/doctor.test" ./examples/doctor
  go build -o "$work/blockstore" ./examples/blockstore
  mkdir "$work/tree"
  cp -r hw/loop ep "$work/tree"
fi

# The guest runs this job: the test programs, one after the other.
cat >"$work/job" <<'JOB'
work=$1 mode=$2 run=$3 limit=$4 status=0
device=ibv:$GODAT_GUEST_DEVICE
kind=${GODAT_GUEST_DEVICE%[0-9]}
began=$(cut -d. -f1 /proc/uptime)

# left: the seconds that are left of the job's, but for the minute in which a program that hangs says
# where. A slow machine is slow in all programs, so none has a limit of its own.
left() {
  seconds=$((began + limit * 60 - 60 - $(cut -d. -f1 /proc/uptime)))
  echo $((seconds > 1 ? seconds : 1))
}

# tests NAME FLAG...: runs a test program.
tests() {
  name=$1
  shift
  "$work/$name.test" -test.v -test.timeout "$(left)s" "$@" || status=$?
}

# conformance RUN FLAG...: runs cases of DAT's suite.
conformance() {
  cases=$1
  shift
  tests conformance -test.run "$cases" "$@" -conformance.ia "$device" -conformance.table "$kind" -conformance.absent 10.0.2.99 \
    -conformance.scale 1/256 -conformance.patience 2m
}

# dat: DAT's conformance suite.
dat() {
  # A device's gaps in DAT's suite; guest_differences_test.go gives the reasons for most.
  # lax-credit: siw_accept raises the number of incoming reads that the acceptor allows to
  # the number that the initiator asks for (relaxed_ird_negotiation).
  # may-wake-for-all: no completion on soft-RoCE says that its receive was solicited.
  # silent: no verb asks a device how far its send queue has come.
  set -- -conformance.gaps may-wake-for-all,silent
  if [ "$kind" = siw ]; then set -- -conformance.params tail=on -conformance.gaps early,lax-reads,lax-credit,wakes-for-all,fails-here,silent; fi
  conformance '^TestConformance$' "$@"
  # Over pairs, of each area the cases that an end without a connection manager may change. All
  # others run over pairs of loop and of the simulated device. What can't be over pairs is in
  # check/conformance/run.go; untold-end: the byte that says that an end was in order stands
  # behind the send that waits.
  if [ "$kind" = rxe ]; then
    conformance '^TestConformance$/^(DTO-(1|3|17|19)|FL-(2|8)|EV-(2|3|19)|ST-(3|5|9)|ME-8|DS-8)$' \
      -conformance.paired -conformance.params keepalive=100ms,ack_timeout=15 -conformance.gaps may-wake-for-all,untold-end
  fi
}

# above: the tests of what uses a device.
above() {
  # The tests that are skipped take long under emulation, or dial for less time than a slow machine takes; they need
  # no device, or ask of it what the others ask.
  tests stream -test.short -test.skip 'AllocateNothing|NeverBlockEachOther|ABrokenTransport|HTTPOverTLS|HundredsOfDialers|TheErrorOfADial|ADialThatRanOutOfTime'
  tests rpc -test.run '^TestServersThatFollow|^TestTheCallersMemoryGoesIntoAFile|^TestAFileThatFails|^TestMemoryThatIsMappedReadOnly|^TestAListenAwaitsTheEnd'
  tests rping -test.run '^TestOurServerAnswers|^TestTheirServerAnswers'
  if [ "$kind" = rxe ]; then tests rdmaping -test.run '^TestOur|^TestAPeerWithoutAGID'; fi
  tests dattest -test.run '^TestAgainstTheCProgram$|^TestDtest'
  tests doctor -test.run '^TestTheGuest'
  blockstore
}

# blockstore: one process keeps another one's files.
blockstore() {
  "$work/blockstore" -provider "$device" -listen 10.0.2.15:4791 -store "$TMPDIR/blocks.db" >"$TMPDIR/server" 2>&1 &
  server=$!
  until grep -q serving "$TMPDIR/server" || ! kill -0 "$server"; do sleep 0.1; done
  timeout "$(left)" "$work/blockstore" -provider "$device" -connect 10.0.2.15:4791 -dir "$work/tree" || status=$?
  kill "$server"
  wait "$server" || status=$?
  cat "$TMPDIR/server"
}

# gone: waits until the kernel has removed the device, which it does when no process has
# it open any more.
gone() {
  while [ -e "/sys/class/infiniband/$GODAT_GUEST_DEVICE" ]; do
    if [ "$(left)" = 1 ]; then
      echo "the device $GODAT_GUEST_DEVICE was not removed"
      exit 1
    fi
    sleep 0.1
  done
}

# ruin runs the tests that leave a useless device: when the link is down, a
# send of the connection manager fails, and soft-RoCE's connection manager then receives
# nothing until the device is deleted and added again.
ruin() {
  export GODAT_GUEST_RUIN=1
  tests ibv -test.run '^TestLinkThatGoesDown'
  rdma link delete "$GODAT_GUEST_DEVICE"
  gone
  rdma link add "$GODAT_GUEST_DEVICE" type "${GODAT_GUEST_DEVICE%0}" netdev eth0
  tests ibv -test.run '^TestDeviceThatIsRemoved'
  gone
}

case $mode in dat | above) ;; *) tests ibv -test.run "$run" ;; esac
case $mode in plain | dat) dat ;; esac
case $mode in plain | above) above ;; esac
case $mode in plain | provider) ruin ;; esac
exit $status
JOB

# expected DEVICE: the least number of cases that must pass.
expected() {
  awk -v mode="$mode" -v device="$1" '$1 == mode && $2 == device { print $3 }' hw/ibv/testdata/cases.txt
}

machine=123 # the exit status of the command guest when the guest's kernel failed

# try DEVICE: runs the job in a guest that has the device, and says how it went. It fails
# with $machine when no test failed but the guest's kernel did.
try() {
  local device=$1 log=$work/$1.log status=0 began=$SECONDS passed bad skipped want line
  "$work/guest" -device "$device" -module sch_netem -busy "${GODAT_GUEST_BUSY:-0}" -env "GODAT_GUEST_REJECTER=$work/rejecter" -env "GODAT_GUEST_KILLS=${GODAT_GUEST_KILLS:-3}" \
    -timeout "${limit}m" -- sh "$work/job" "$work" "$mode" "$run" "$limit" >"$log" || status=$?
  passed=$(grep -acE '^ *--- PASS|^verified ' "$log" || true)
  bad=$(grep -acE '^ *--- FAIL' "$log" || true)
  skipped=$(grep -acE '^ *--- SKIP' "$log" || true)
  want=$(expected "$device")
  line="$mode on $device: $passed cases passed, $bad failed, ${want:-?} expected, in $((SECONDS - began)) s"
  grep -a '^different: ' "$log" | sort -u || true
  if ((!status && !bad && !skipped)) && [[ $want ]] && ((passed >= want)); then
    echo "$line"
    return
  fi
  grep -a -vE '^ *(=== (RUN|PAUSE|CONT)|--- PASS)|^different: ' "$log" | cut -c1-400 | tail -n 200 || true
  # What the assertions said comes last: of a long record, often the end alone is kept.
  if ((bad)); then grep -a -A 30 'Error Trace:' "$log" | grep -a -v '^different: ' | cut -c1-400 | head -n 60 || true; fi
  echo "$line: FAILED (exit status $status)"
  if ((status == machine && !bad)); then return "$machine"; fi
  return 1
}

# One guest alone rarely keeps two processors busy, so the guests of all devices run beside
# each other.
declare -A tries
for device in "${devices[@]}"; do
  try "$device" >"$work/$device.report" 2>&1 &
  tries[$device]=$!
done
failed=0 blamed=0
for device in "${devices[@]}"; do
  status=0
  wait "${tries[$device]}" || status=$?
  cat "$work/$device.report"
  if ((status == machine)); then blamed=1; elif ((status)); then failed=1; fi
done
printf '\n'
for device in "${devices[@]}"; do tail -n 1 "$work/$device.report"; done
if ((blamed && !failed)); then exit "$machine"; fi
exit $failed
