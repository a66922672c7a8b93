#!/usr/bin/env bash
# Has this package talk to the kernel's soft-iWARP (siw) in the guest that
# hw/hwtest/guest makes: C rping as server and as client, with CRCs and without,
# with and without the peer-to-peer model, of 64 to 65535 bytes; what siw refuses;
# captures of that, which tshark must dissect without a malformed frame; and
# examples/blockstore between two processes that lose 1 % of their packets and have
# 20 ms of delay. It fails, never skips, when something is missing, and when fewer
# cases ran than it says here. hw/hwtest/guest/install.sh installs what it needs.
set -euo pipefail
cd "$(dirname "$0")/../.."

want=38     # cases that must have passed, with their groups
captures=6  # of them are captured
limit=${GODAT_GUEST_LIMIT:-8m}

command -v tshark >/dev/null || { echo "test-guest.sh needs tshark" >&2; exit 1; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/captures" "$work/tree"
cp -r hw/loop hw/iwarp ep "$work/tree"

CGO_ENABLED=0 go test -c -tags guest -o "$work/iwarp.test" ./hw/iwarp
CGO_ENABLED=0 go build -o "$work/blockstore" ./examples/blockstore
go build -o "$work/guest" ./hw/hwtest/guest/cmd/guest

cat >"$work/job" <<'JOB'
work=$1
status=0
GODAT_CAPTURES=$work/captures "$work/iwarp.test" -test.v -test.timeout 7m \
  -test.run '^(TestOurClientAndTheCServer|TestOurServerAndTheCClient|TestSiwHearsAReject|TestWhatSiwRefuses)$' || status=$?

tc qdisc add dev lo root netem delay 20ms loss 1% || status=1
store=$TMPDIR/blocks.db
"$work/blockstore" -provider iwarp -listen 10.0.2.15:4791 -store "$store" >"$TMPDIR/server" 2>&1 &
server=$!
for i in $(seq 300); do
  if grep -q serving "$TMPDIR/server"; then break; fi
  sleep 0.1
done
timeout 150 "$work/blockstore" -provider iwarp -connect 10.0.2.15:4791 -dir "$work/tree" -stall 60s || status=$?
tc -s qdisc show dev lo
kill "$server"
wait "$server" || status=$?
cat "$TMPDIR/server"
exit $status
JOB

log=$work/log status=0
nice -n 5 "$work/guest" -q -device siw0 -module sch_netem -share "$work/captures" -timeout "$limit" -- \
  sh "$work/job" "$work" >"$log" || status=$?
passed=$(grep -cE '^ *--- PASS' "$log" || true)
verified=$(grep -c '^verified ' "$log" || true)
lost=$(sed -nE 's/.*\(dropped ([0-9]+),.*/\1/p' "$log" | head -n 1)

# A capture is dissected to the end: connections are iWARP's, and nothing in them
# is malformed. The two heuristics see Sends as what they are not.
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

line="iwarp in the guest: $passed cases passed of $want; blockstore with $((lost)) packets lost: $verified verified;"
line+=" $files captures of $captures, $good good CRCs"
if ((status || bad || passed < want || verified != 1 || lost == 0 || files < captures || good == 0)); then
  grep -vE '^ *(=== (RUN|PAUSE|CONT)|--- PASS)' "$log" | cut -c1-400 | tail -n 150
  echo "$line: FAILED (exit status $status)"
  exit 1
fi
echo "$line"
