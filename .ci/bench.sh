# Every benchmark a few times, to see that it runs: the numbers mean nothing.
set -euo pipefail
go test -run '^$' -bench . -benchtime 10x ./... | tee "$CI_TEMP/bench.txt"
grep -q '^Benchmark' "$CI_TEMP/bench.txt"
go run ./bench --repeats 1 --duration 2ms ratios
go run ./bench --repeats 1 --duration 2ms --html "$CI_TEMP/bench.html" --format json >"$CI_TEMP/bench.json"
go run ./bench show "$CI_TEMP/bench.json" >/dev/null
go run ./bench --repeats 1 --duration 2ms --producers 1,2 --depth 1,16 --rate max >/dev/null
