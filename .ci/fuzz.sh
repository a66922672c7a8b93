# Runs each fuzz target for a moment; the targets are found by listing. The moment
# is a count by default: go test now and then calls the end of a time a failure
# ("context deadline exceeded").
set -euo pipefail
found=0
for pkg in $(go list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}' ./...); do
  # go test compiles each package to list it; grep first, it is cheaper.
  grep -qsE '^func Fuzz' "$(go list -f '{{.Dir}}' "$pkg")"/*_test.go || continue
  for target in $(go test -list '^Fuzz' "$pkg" | grep '^Fuzz'); do
    echo "go test -fuzz '^$target\$' $pkg"
    go test -run '^$' -fuzz "^$target\$" -fuzztime "${FUZZTIME:-5000x}" "$pkg"
    found=$((found + 1))
  done
done
echo "$found fuzz targets"
((found > 0))
