# Every benchmark a few times, to see that it runs: the numbers mean nothing.
set -euo pipefail
. .ci/packages.sh
mapfile -t packages < <(
  go list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}} {{.Dir}}{{end}}' "${packages[@]}" | while read -r pkg dir; do
    if grep -q '^func Benchmark' "$dir"/*_test.go 2>/dev/null; then echo "$pkg"; fi
  done
)
go test -run '^$' -bench . -benchtime 10x "${packages[@]}" | tee "$CI_TEMP/bench.txt"
grep -q '^Benchmark' "$CI_TEMP/bench.txt"
go build -o "$CI_TEMP/bench" ./bench
# unanswered FLAGS...: one repeat is too few to answer from, which the program must say.
unanswered() {
  local status=0
  "$CI_TEMP/bench" --repeats 1 --duration 2ms "$@" || status=$?
  ((status == 4))
}
unanswered --histograms "$CI_TEMP/bench.hlog" --format json >"$CI_TEMP/bench.json"
unanswered --producers 1,2 --depth 1,16 --rate max >/dev/null
