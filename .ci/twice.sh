#!/usr/bin/env bash
# twice.sh COMMAND...: runs it a second time when it fails. It is for tests in the guest,
# whose kernel has bugs of its own: a peer that leaves while its request is being accepted
# can stop it (BUG in cm_close_handler of iwcm.c, Linux 6.1). What happened then is to be
# looked into all the same; what is broken fails again.
set -euo pipefail
if "$@"; then exit; fi
status=0
"$@" || status=$?
echo "RAN TWICE, status $status: $*" | tee -a "$CI_TEMP/twice.summary"
exit "$status"
