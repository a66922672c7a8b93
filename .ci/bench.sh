# Every benchmark a few times, to see that it runs: the numbers mean nothing.
set -euo pipefail
go test -run '^$' -bench . -benchtime 10x ./... | tee "$CI_TEMP/bench.txt"
grep -q '^Benchmark' "$CI_TEMP/bench.txt"
go run ./bench --repeats 1 --slice 2ms delivery
