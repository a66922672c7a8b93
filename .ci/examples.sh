# The examples on small input, and that blockstore finds one flipped byte.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

echo "go run ./examples/quickstart"
go run ./examples/quickstart

go build -o "$dir/blockstore" ./examples/blockstore
tree=$dir/tree
mkdir -p "$tree"
cp -r hw mem "$tree"
: >"$tree/an empty file"
marker="these words are in one file and nowhere else: $RANDOM$RANDOM"
{ head -c 100000 /dev/urandom; echo "$marker"; head -c 100000 /dev/urandom; } >"$tree/the file to damage"

"$dir/blockstore" -dir "$tree" -store "$dir/blocks.db"
"$dir/blockstore" -verify -store "$dir/blocks.db"

# Flips a bit of the marker, wherever it lies in the store.
at=$(grep -abo "$marker" "$dir/blocks.db" | head -n 1 | cut -d: -f1)
printf 'T' | dd of="$dir/blocks.db" bs=1 seek="$at" conv=notrunc status=none
if "$dir/blockstore" -verify -store "$dir/blocks.db" 2>"$dir/err"; then
  echo "a flipped byte was not noticed"
  exit 1
fi
cat "$dir/err"
grep -q "the file to damage" "$dir/err" || { echo "the damaged file is not named"; exit 1; }
grep -q "1 of " "$dir/err"
