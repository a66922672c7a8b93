#!/usr/bin/env bash
# Tests this package against the kernel's soft-iWARP (siw), in the guest that package
# check/guest boots:
#   - the C program rping as the server and as the client, with and without CRCs, with
#     and without the peer-to-peer model, with messages of 64 to 65535 bytes
#   - connections that close at once, made by the C programs cmtime and dtest; siw's
#     kernel must survive them
#   - what siw refuses
#   - captures of some of these connections, which tshark must dissect without finding a
#     malformed frame
#   - the program examples/rping against the C program, as the server and as the client
#   - the transactions of examples/dattest between this package and hw/ibv on siw, each
#     once as the server
#   - examples/blockstore between two processes, over a network that delays packets by
#     20 ms and loses 1 % of them
#
# The script skips nothing. It fails when a program is missing, when a test fails, and
# when fewer cases passed than the numbers below. It exits with 123 when the guest's
# kernel failed or did not boot, and no test failed.
#
# Environment: GODAT_GUEST_CLOSES and GODAT_GUEST_DTEST_CLOSES are how many connections
# cmtime and dtest close (200 and 10), GODAT_GUEST_BUSY is how many processes compute
# beside the tests (0), and GODAT_GUEST_LIMIT is the time limit in minutes (12m).
# check/guest/install.sh installs what the script needs.
set -euo pipefail
cd "$(dirname "$0")/../.."

want=68         # the least number of cases that must pass, groups included
captures=6      # the least number of captures
transactions=8  # the least number of transactions of dattest that must pass
limit=${GODAT_GUEST_LIMIT:-12m}
machine=123     # the exit status of the command guest when the guest's kernel failed

for program in tshark rping cmtime dtest; do
  command -v "$program" >/dev/null || { echo "test-guest.sh needs $program" >&2; exit 1; }
done

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/captures" "$work/tree"
cp -r hw/loop hw/iwarp ep "$work/tree"

CGO_ENABLED=0 go test -c -tags guest -o "$work/iwarp.test" ./hw/iwarp
CGO_ENABLED=0 go build -o "$work/blockstore" ./examples/blockstore
CGO_ENABLED=1 go test -c -tags guest -o "$work/rping.test" ./examples/rping
CGO_ENABLED=1 go build -o "$work/dattest" ./examples/dattest
go build -o "$work/guest" ./check/guest/cmd/guest
cc -Wall -Werror -o "$work/rejecter" check/guest/testdata/rejecter.c -lrdmacm -libverbs

cat >"$work/job" <<'JOB'
work=$1 limit=$2 status=0
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

export GODAT_CAPTURES=$work/captures
tests iwarp -test.run '^(TestOurClientPingsTheCServer|TestTheCClientPingsOurServer|TestSiwReceivesAReject|TestSiwDoesNot.*|TestTheRejectOf.*|TestARefusalOfSiwHasItsStatus)$'
unset GODAT_CAPTURES
tests iwarp -test.run '^TestTheKernelOutlives'

export GODAT_RPING_IA=iwarp:10.0.2.15 GODAT_RPING_PARAMS
for GODAT_RPING_PARAMS in '' 'crc=false peer2peer=false'; do
  tests rping -test.run '^TestOurServerAnswers|^TestTheirServerAnswers'
done

# awaited FILE TEXT: waits until a program has written the text to the file.
awaited() {
  until grep -q "$2" "$1"; do
    if [ "$(left)" = 1 ]; then echo "$1: no $2" >&2 && return; fi
    sleep 0.1
  done
}

# transactions SERVER CLIENT: runs dattest's transactions between two processes, which
# open the adapters SERVER and CLIENT.
transactions() {
  said=$TMPDIR/dattest
  "$work/dattest" -T S -D "$1" >"$said" 2>&1 &
  server=$!
  awaited "$said" 'Service Point Ready'
  while read -r line; do
    if "$work/dattest" -T T -D "$2" -s 10.0.2.15 -timeout "$(left)s" $line </dev/null; then
      echo "transaction passed: $1, $2: $line"
    else
      status=1
      echo "transaction failed: $1, $2: $line" >&2
    fi
  done <<'LINES'
-i 1 client SR 4096 server SR 4096
-i 20 -V client RR 4096 server RR 512 client RW 4096 2 server RW 2048 4 client SR 1024 3 server SR 1024 3
-i 10 -P -w 2 client RW 32768 4 server RW 8192 4 server RR 16384 client RR 32768 client SR 8192 3 -f server SR 16384 4 -f
-i 10 -t 2 -w 2 client SR 8192 3 server SR 8192 3
LINES
  timeout "$(left)" "$work/dattest" -T Q -D "$2" -s 10.0.2.15 || status=1
  wait "$server" || status=1
  cat "$said"
}
transactions iwarp:10.0.2.15 "ibv:$GODAT_GUEST_DEVICE"
transactions "ibv:$GODAT_GUEST_DEVICE" iwarp:10.0.2.15

tc qdisc add dev lo root netem delay 20ms loss 1% || status=1
store=$TMPDIR/blocks.db
"$work/blockstore" -provider iwarp -listen 10.0.2.15:4791 -store "$store" >"$TMPDIR/server" 2>&1 &
server=$!
awaited "$TMPDIR/server" serving
timeout "$(left)" "$work/blockstore" -provider iwarp -connect 10.0.2.15:4791 -dir "$work/tree" -stall 60s || status=$?
tc -s qdisc show dev lo
kill "$server"
wait "$server" || status=$?
cat "$TMPDIR/server"
exit $status
JOB

log=$work/log status=0
nice -n 5 "$work/guest" -q -device siw0 -module sch_netem -busy "${GODAT_GUEST_BUSY:-0}" -share "$work/captures" -timeout "$limit" \
  -env "GODAT_GUEST_REJECTER=$work/rejecter" -env "GODAT_GUEST_CLOSES=${GODAT_GUEST_CLOSES:-}" -env "GODAT_GUEST_DTEST_CLOSES=${GODAT_GUEST_DTEST_CLOSES:-}" -- \
  sh "$work/job" "$work" "${limit%m}" >"$log" || status=$?
passed=$(grep -cE '^ *--- PASS' "$log" || true)
traded=$(grep -c '^transaction passed' "$log" || true)
verified=$(grep -c '^verified ' "$log" || true)
lost=$(sed -nE 's/.*\(dropped ([0-9]+),.*/\1/p' "$log" | head -n 1)

# tshark must dissect each capture to its end: it must find iWARP connections and nothing
# malformed. The two disabled heuristics would take Sends for other protocols.
bad=0 frames=0 files=0 good=0
for f in "$work"/captures/*.pcapng; do
  text=$(tshark -r "$f" -V -Y 'iwarp_mpa || _ws.malformed' \
    --disable-heuristic rpcrdma_iwarp --disable-heuristic smb_direct_iwarp 2>"$work/complaint") ||
    { cat "$work/complaint" >&2; bad=1; }
  n=$(grep -c 'Send\|RDMA Read\|RDMA Write' <<<"$text" || true)
  if ((n == 0)) || grep -iq 'malformed\|bad crc' <<<"$text"; then
    echo "$(basename "$f"): not dissected"
    bad=1
  fi
  files=$((files + 1)) frames=$((frames + n))
  good=$((good + $(grep -c 'Good CRC32' <<<"$text" || true)))
done

line="iwarp in the guest: $passed cases passed of $want; $traded transactions of $transactions; blockstore with $((lost)) packets lost: $verified verified;"
line+=" $files captures of $captures, $good good CRCs"
if ((status || bad || passed < want || traded < transactions || verified != 1 || lost == 0 || files < captures || good == 0)); then
  grep -vE '^ *(=== (RUN|PAUSE|CONT)|--- PASS)' "$log" | cut -c1-400 | tail -n 150
  echo "$line: FAILED (exit status $status)"
  if ((status == machine)) && ! grep -qE '^ *--- FAIL|^transaction failed' "$log"; then exit "$machine"; fi
  exit 1
fi
echo "$line"
