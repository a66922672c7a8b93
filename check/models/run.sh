#!/usr/bin/env bash
# Checks each model in all its states, and then with each of the faults that its #ifdefs name, which must be found.
# Needs spin and a C compiler: run.sh [MODEL...]
set -euo pipefail
cd "$(dirname "$0")"
temp=$(mktemp -d)
trap 'rm -rf "$temp"' EXIT

# verify MODEL [-DFAULT]: prints spin's lines; says by its status whether all is right.
verify() {
  local dir
  dir=$(mktemp -d -p "$temp")
  cp "$1" "$dir/model.pml"
  (
    cd "$dir"
    if ! { spin -a ${2:+"$2"} model.pml && cc -O2 -w -DSAFETY -DMEMLIM=2000 -o pan pan.c; } >out 2>&1; then
      cat out
      return 2
    fi
    timeout 120 ./pan -m1000000 >out 2>&1 || true
    grep -E 'errors: |states, stored|pan:[0-9]+:' out || true
    grep -q 'errors: 0' out && ! grep -q 'max search depth too small\|out of memory' out
  )
}

status=0
models=("$@")
((${#models[@]})) || models=(*.pml)
for model in "${models[@]}"; do
  if said=$(verify "$model"); then
    echo "$model: holds, $(grep -oE '[0-9.e+]+ states, stored' <<<"$said")"
  else
    printf '%s: FAILS\n%s\n' "$model" "$said"
    status=1
  fi
  for fault in $(grep -oE '^#ifn?def [A-Z_]{12,}' "$model" | awk '{print $2}' | sort -u); do
    said=$(verify "$model" "-D$fault") || true
    if shown=$(grep -m1 -oE 'pan:[0-9]+: .*' <<<"$said"); then
      echo "$model: $fault is found: $shown"
    else
      printf '%s: %s is NOT FOUND\n%s\n' "$model" "$fault" "$said"
      status=1
    fi
  done
done
exit $status
