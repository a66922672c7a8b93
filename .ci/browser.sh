# Runs the page of runtime/inspect in a browser.
set -euo pipefail
export DEBIAN_FRONTEND=noninteractive
apt-get install -y -qq --no-install-recommends chromium >/dev/null ||
  { apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium >/dev/null; }
go vet -tags chromium ./runtime/inspect
go test -count=1 -tags chromium -run TestABrowser ./runtime/inspect
