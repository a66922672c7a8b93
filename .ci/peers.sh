# The module of peers, which godat does not require: tests it, and runs
# `bench peers` and `bench rpc` briefly. A lane of the module that is refused is a failure, unless
# something else used the processors.
set -euo pipefail
bash .ci/again.sh peers go test -race -shuffle=on -- ./bench/peers/...
out=$CI_TEMP/peers.txt
go build -o "$CI_TEMP/bench" ./bench
"$CI_TEMP/bench" --repeats 2 --duration 5ms peers >"$out" || (($? == 4)) # two repeats are too few to answer from
refused=$(grep 'refused:' "$out" || true)
echo "$refused"
if grep -E 'gRPC|QUIC|godat' <<<"$refused" | grep -v 'something else used the processors'; then exit 1; fi
for name in 'gRPC stream' 'gRPC call' 'QUIC stream' "gRPC call over godat's streams over iwarp"; do
  grep -qE "^- (.*, )?$name[,:]" "$out" || { echo "bench peers has no row $name"; exit 1; }
done
# A row that does not prove what it ran ends this with an error; a busy machine does not.
calls=$("$CI_TEMP/bench" --repeats 1 --duration 5ms rpc --size 64,65536 --large 1048576) || (($? == 4)) # other programs used the processors
echo "$calls"
for name in 'rpc over loop, registered' 'rpc over iwarp, registered' 'rpc over iwarp, as it comes' 'gRPC, tuned' 'gRPC, as it comes' net/http net/rpc 'a plain server on net'; do
  (($(grep -c "^| $name | [0-9].*s (few)" <<<"$calls") >= 4)) || { echo "bench rpc has not all rows of $name"; exit 1; }
done
