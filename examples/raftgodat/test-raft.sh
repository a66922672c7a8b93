#!/usr/bin/env bash
# Runs the tests of hashicorp/raft itself over this transport: the nodes of each cluster that they
# make have it in place of raft's transport inside the process.
#
#   test-raft.sh [DEVICE...]     on loop and iwarp:127.0.0.1, if none is named
#
# Raft's module is copied to a temporary directory, where testdata/inmem_transport.go takes the place
# of raft's own; nothing of raft is kept in this repository. Its tests wait no longer for an election
# than a quiet machine needs, over any transport. So tests that failed run again, up to TRIES times (5).
set -euo pipefail
cd "$(dirname "$0")"
export GOWORK=off # for -modfile
devices=("$@")
if ((${#devices[@]} == 0)); then devices=(loop iwarp:127.0.0.1); fi
want=81 # the least number of tests that must pass

work=$(mktemp -d)
trap 'chmod -R u+w "$work" && rm -rf "$work"' EXIT
cp -r "$(go list -m -f '{{.Dir}}' github.com/hashicorp/raft)" "$work/raft"
chmod -R u+w "$work/raft"
rm "$work/raft/inmem_transport_test.go" # of what is not there
cp testdata/inmem_transport.go "$work/raft/"
cp testdata/make_test.go "$work/raft/zz_make_test.go"
sed "s#=> \.\./\.\.#=> $(cd ../.. && pwd)#" go.mod >"$work/go.mod"
echo "replace github.com/hashicorp/raft => $work/raft" >>"$work/go.mod"
cp go.sum "$work/"
go test -modfile="$work/go.mod" -c -o "$work/raft.test" github.com/hashicorp/raft

# names WORD FILE: the tests of which the log says that.
names() { sed -nE "s/^--- $1: (\S+).*/\1/p" "$2" | sort -u; }

for device in "${devices[@]}"; do
  pattern='^(TestRaft_|TestTransport_)' begun=$SECONDS
  : >"$work/passed"
  for try in $(seq "${TRIES:-5}"); do
    log=$work/log.$try
    (cd "$work/raft" && RAFTGODAT_DEVICE=$device timeout 300 "$work/raft.test" -test.v -test.run "$pattern") >"$log" 2>&1 || true
    names PASS "$log" >>"$work/passed"
    failed=$(names FAIL "$log" | grep -vxFf "$work/passed" || true)
    passed=$(sort -u "$work/passed" | wc -l)
    if [[ -z $failed ]]; then break; fi
    echo "raft over $device, try $try: failed:" $failed
    pattern="^($(paste -sd'|' <<<"$failed"))\$"
  done
  echo "raft over $device: $passed tests passed, $want expected, in $((SECONDS - begun)) s"
  if [[ -n $failed ]] || ((passed < want)); then
    grep -vE '\[(DEBUG|INFO|WARN|ERROR)\]' "$log" | tail -n 60
    exit 1
  fi
done
