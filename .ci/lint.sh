# The linter, with the import rules, in the library and each module beside it.
set -euo pipefail
for mod in . bench check examples; do
  (cd "$mod" && golangci-lint run ./...)
done
