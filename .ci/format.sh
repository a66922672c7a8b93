# Fails when gofumpt would change a file.
set -euo pipefail
changed=$(gofumpt -l .)
if [[ -n $changed ]]; then
  printf 'gofumpt would change:\n%s\n' "$changed"
  exit 1
fi
