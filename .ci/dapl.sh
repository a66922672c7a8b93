# Compares names and numbers with the DAT headers of Debian's libdapl-dev.
set -euo pipefail
export DEBIAN_FRONTEND=noninteractive
if [[ ! -f /usr/include/dat2/udat.h ]]; then
  apt-get install -y -qq --no-install-recommends libdapl-dev >/dev/null ||
    { apt-get update -qq && apt-get install -y -qq --no-install-recommends libdapl-dev >/dev/null; }
fi
dpkg-query -W libdapl-dev
go vet -tags dapl ./runtime
go test -count=1 -tags dapl -run '^(TestTheNumbersAreThoseOfTheHeaders|TestNumbersAreDATs|TestEveryNameOfDATIsInTheTable)$' -v ./runtime
