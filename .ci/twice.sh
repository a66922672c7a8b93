#!/usr/bin/env bash
# twice.sh COMMAND...: runs it a second time when it exits with 123: when the guest did
# not boot, or its kernel failed (package check/guest), which has bugs of its own. A
# test that fails is not run again. Each second try is a finding, to be looked into: the
# summary of the run has it, with its number, and closing.sh counts them.
set -euo pipefail
machine=123
status=0
"$@" || status=$?
if ((status != machine)); then exit "$status"; fi
echo "guest $*" >>"$CI_TEMP/second-tries"
status=0
"$@" || status=$?
summary=$CI_TEMP/twice.summary
n=$(($(grep -c '^FINDING' "$summary" 2>/dev/null || true) + 1))
echo "FINDING $n: the guest's kernel failed or did not boot, status $status at the second try: $*" | tee -a "$summary"
exit "$status"
