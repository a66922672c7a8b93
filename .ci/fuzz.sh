# Runs each fuzz target for a moment; the targets are found by listing. HALF=0 or 1 runs each second one.
set -euo pipefail
. .ci/packages.sh

# fuzz TARGET PACKAGE: go test now and then calls the end of the time a failure
# ("context deadline exceeded"); a real one names the input that it wrote.
# The public API has many methods, and a call among goroutines that finds something
# new does not find it again, so that there is nothing to minimize.
fuzz() {
  local log=$CI_TEMP/fuzz.txt time=${FUZZTIME:-20s} minimize=1s
  if [[ $1 == FuzzAPI ]]; then time=30s minimize=1x; fi
  echo "go test -fuzz '^$1\$' $2"
  if ! go test -run '^$' -fuzz "^$1\$" -fuzztime "$time" -fuzzminimizetime "$minimize" "$2" >"$log" 2>&1; then
    if grep -q 'Failing input written' "$log" || ! grep -q 'context deadline exceeded' "$log"; then
      cat "$log"
      again "$2" "$log"
      return 1
    fi
  fi
  grep '^fuzz: ' "$log" | tail -n 1
}

# again PACKAGE LOG prints the input that failed and runs it once more: what a worker
# printed before it ended is lost.
again() {
  local input
  input=$(sed -n 's/.*Failing input written to //p' "$2" | head -n 1)
  [[ -n $input ]] || return 0
  input=$(go list -f '{{.Dir}}' "$1")/$input
  cat "$input"
  go test -timeout 2m -run "^$(basename "$(dirname "$input")")\$/^$(basename "$input")\$" "$1" || true
}

CI_TEMP=${CI_TEMP:-$(mktemp -d)}
found=0 half=${HALF:-}
# Listed by grep, since go test links each package's tests to list them.
while read -r target pkg; do
  found=$((found + 1))
  if [[ -n $half ]] && ((found % 2 != half)); then continue; fi
  fuzz "$target" "$pkg" </dev/null
done < <(
  go list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}} {{.Dir}}{{end}}' "${packages[@]}" | while read -r pkg dir; do
    [[ -z $pkg ]] || sed -nE "s#^func (Fuzz\w*)\(.*#\1 $pkg#p" "$dir"/*_test.go
  done
)
echo "$found fuzz targets${half:+, each second one}"
((found > 0))
