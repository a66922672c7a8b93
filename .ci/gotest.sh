# gotest.sh LOG go test ...: runs the tests verbosely into LOG and shows what
# matters of it: a line per package, the shuffle's seeds, what failed, a count, what took long.
# A skipped test is a failure, unless its message says "capability: NAME" and
# NAME is a word of CI_PROBED, which lists what the machine was found to lack. kernel-tools
# are the programs that make a guest's kernel: they are hidden with the compilers, and come with
# the guest. git-history is what a copy of the files does not have.
set -euo pipefail
log=$1
shift
for tool in apt-get apt-cache dpkg-deb depmod tar xz make gcc-12; do
  PATH=$PATH:/usr/sbin:/sbin command -v "$tool" >/dev/null || CI_PROBED="${CI_PROBED:-} kernel-tools"
done
git rev-parse -q --verify HEAD^ >/dev/null 2>&1 || CI_PROBED="${CI_PROBED:-} git-history"
status=0
"${@:1:2}" -v "${@:3}" >"$log" 2>&1 || status=$? # before -args

grep -E '^(ok  |FAIL|\?   |-test\.shuffle|go: |# )' "$log" | awk '!/^-test/ || !seen[$0]++' || true
if ((status)); then
  echo "--- what failed:"
  # What each failed test had to say; then what belongs to no test.
  awk '
    /^=== (RUN|NAME|CONT) / { test = $3; next }
    /^=== |^-test\./ { next }
    /^ *--- FAIL: / {
      for (i = 1; i <= lines[$3] && i <= 60; i++) print said[$3, i]
      print
      lines[$3] = 0
      next
    }
    /^ *--- (PASS|SKIP): / { lines[$3] = 0; next }
    /^(ok  |FAIL|PASS)/ { test = ""; delete lines; next }
    test == "" { print; next }
    { said[test, ++lines[test]] = $0 }
    /^panic:|^fatal error:|WARNING: DATA RACE|^goleak:/ { loud = 60 }
    loud-- > 0
  ' "$log" | head -n 300
fi

skipped=$(awk -v probed=" ${CI_PROBED:-} " '
  # A message, an indented file:line, belongs to the test that runs; the line with SKIP may come much later.
  /^=== (RUN|NAME|CONT) / { test = $3; next }
  /^(ok  |FAIL|PASS)/ { test = ""; delete said; next }
  /^ *[^ ]+\.go:[0-9]+: / { said[test] = said[test] $0 }
  /^ *--- SKIP: / {
    allowed = 0
    if (match(said[$3], /capability: [a-z0-9-]+/)) {
      name = substr(said[$3], RSTART + 12, RLENGTH - 12)
      allowed = index(probed, " " name " ") > 0
    }
    if (!allowed) print $0 ": " said[$3]
  }' "$log")
if [[ -n $skipped ]]; then
  printf 'skipped tests:\n%s\n' "$skipped"
  status=1
fi

count() { grep -cE "^ *--- $1: " "$log" || true; }
packages=$(grep -cE '^ok  ' "$log" || true)
echo "$packages packages ok; $(count PASS) passed, $(count FAIL) failed, $(count SKIP) skipped"
echo "the slowest tests, in seconds:" $(awk '/^--- (PASS|FAIL): / { gsub(/[()s]/, "", $4); if ($4 >= 3) print $4 "=" $3 }' "$log" | sort -rn | head -n 12)
if ((packages == 0)); then
  echo "no package was tested"
  status=1
fi
exit "$status"
