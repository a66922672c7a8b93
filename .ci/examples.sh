# The examples on small input, and that blockstore finds one flipped byte.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

echo "go run ./examples/doctor --json"
go run ./examples/doctor --json >"$dir/doctor.json"

echo "go run ./examples/quickstart"
go run ./examples/quickstart

# A server and clients of the key-value store, in a process each.
go build -o "$dir/kv" ./examples/kv
"$dir/kv" -listen 127.0.0.1:0 >"$dir/kv.out" &
kv=$!
until [[ -s $dir/kv.out ]] || ! kill -0 "$kv"; do sleep 0.1; done
kv_addr=$(head -1 "$dir/kv.out")
long=$(head -c 3000 /dev/zero | tr '\0' x)
"$dir/kv" -addr "$kv_addr" put k "$long"
[[ $("$dir/kv" -addr "$kv_addr" get k) == "$long" ]]
kill -INT "$kv"
wait "$kv"

# A server and clients of the object store; the second server has what the first one took.
go build -o "$dir/objects" ./examples/objects
objects_addr=127.0.0.1:0
for round in first second; do
  "$dir/objects" -listen "$objects_addr" -dir "$dir/store" >"$dir/objects.$round" &
  objects=$!
  until [[ -s $dir/objects.$round ]] || ! kill -0 "$objects"; do sleep 0.1; done
  objects_addr=$(head -1 "$dir/objects.$round")
  if [[ $round == first ]]; then "$dir/objects" -addr "$objects_addr" put a/source examples/objects/server.go; fi
  "$dir/objects" -addr "$objects_addr" get a/source "$dir/got"
  cmp examples/objects/server.go "$dir/got"
  "$dir/objects" -addr "$objects_addr" get a/source "$dir/got" 8 4
  [[ $(<"$dir/got") == main ]]
  [[ $("$dir/objects" -addr "$objects_addr" list) == a/source ]]
  kill -TERM "$objects"
  wait "$objects"
done

go build -o "$dir/blockstore" ./examples/blockstore
tree=$dir/tree
mkdir -p "$tree"
cp -r hw mem "$tree"
: >"$tree/an empty file"
marker="these words are in one file and nowhere else: $RANDOM$RANDOM"
{ head -c 100000 /dev/urandom; echo "$marker"; head -c 100000 /dev/urandom; } >"$tree/the file to damage"

"$dir/blockstore" -dir "$tree" -store "$dir/blocks.db"
"$dir/blockstore" -verify -store "$dir/blocks.db"

# Flips a bit of the marker, wherever it lies in the store: a page that was written
# anew leaves an old copy behind.
grep -abo "$marker" "$dir/blocks.db" | cut -d: -f1 >"$dir/marks"
[[ -s $dir/marks ]] || { echo "the marker is not in the store"; exit 1; }
while read -r at; do
  printf 'T' | dd of="$dir/blocks.db" bs=1 seek="$at" conv=notrunc status=none
done <"$dir/marks"
if "$dir/blockstore" -verify -store "$dir/blocks.db" 2>"$dir/err"; then
  echo "a flipped byte was not noticed"
  exit 1
fi
cat "$dir/err"
grep -q "the file to damage" "$dir/err" || { echo "the damaged file is not named"; exit 1; }
grep -q "1 of " "$dir/err"

# Two processes that talk over iwarp on loopback: dattest, then rping.
go build -o "$dir/dattest" ./examples/dattest
go build -o "$dir/rping" ./examples/rping
provider=iwarp:127.0.0.1

# ready FILE TEXT PID: waits until a process has printed it, or is gone.
ready() {
  for _ in $(seq 600); do
    if grep -q "$2" "$1"; then return; fi
    kill -0 "$3" 2>/dev/null || return 1
    sleep 0.05
  done
  return 1
}

# The server's port is any that is free: others may run here.
for _ in $(seq 20); do
  port=$((20000 + RANDOM % 10000))
  timeout 120 "$dir/dattest" -T S -D "$provider" -n "$port" >"$dir/said" 2>&1 &
  server=$!
  if ready "$dir/said" "Service Point Ready" "$server"; then break; fi
  wait "$server" || true
  server=
done
[[ -n $server ]] || { cat "$dir/said"; echo "dattest does not listen"; exit 1; }
ask() {
  local test=$1
  shift
  timeout 60 "$dir/dattest" -T "$test" -D "$provider" -s 127.0.0.1 -n "$port" "$@" >"$dir/heard" || { cat "$dir/heard" "$dir/said"; return 1; }
}
ask T -i 50 -t 2 -w 2 -V client SR server SR client RW
grep "^Total" "$dir/heard"
ask T -i 50 -Q client RR 2048 2 server RW 8192 client SR 64 -f server SR 64 -f
ask P -i 1000 RW 4096
grep "^raw" "$dir/heard"
ask Q
wait "$server" || { cat "$dir/said"; echo "the server of dattest ended with $?"; exit 1; }
[[ $(grep -c "Finished for this client" "$dir/said") == 3 ]] || { cat "$dir/said"; exit 1; }
timeout 60 "$dir/dattest" -T L -m 50 -D "$provider" | grep LimitTest:
for area in hwconn endpoint pz mem connmgt queryinfo; do
  timeout 60 "$dir/dattest" -T F -D "$provider" -f "$area" >"$dir/heard" || { cat "$dir/heard"; exit 1; }
done

# pings SIZE: rping, whose client finds the server as soon as it listens.
pings() {
  local port server heard
  for _ in $(seq 5); do
    port=$((20000 + RANDOM % 10000))
    timeout 60 "$dir/rping" -s -a 127.0.0.1 -p "$port" --provider "$provider" -S "$1" >"$dir/said" 2>&1 &
    server=$!
    while kill -0 "$server" 2>/dev/null; do
      if heard=$(timeout 60 "$dir/rping" -c -a 127.0.0.1 -p "$port" --provider "$provider" -C 10 -S "$1" -V -v 2>"$dir/err"); then
        wait "$server" || { cat "$dir/said"; return 1; }
        [[ $(grep -c "^ping data: rdma-ping-" <<<"$heard") == 10 ]]
        return
      fi
      sleep 0.1
    done
  done
  cat "$dir/said" "$dir/err"
  return 1
}
pings 64
pings 65535
echo "rping: 20 pings came back as they were"
