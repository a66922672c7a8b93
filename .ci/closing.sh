# closing.sh: the closing lines of a run, which say with a number what needed a second try, and
# fail the run when that was more than may depend on a moment of the machine's. again.sh and
# twice.sh write down each second try.
set -euo pipefail
most_packages=3 # of all stages together, among some 300 runs of packages
most_guests=1   # of the guests that the stages boot
list=$CI_TEMP/second-tries

# tries KIND: how many there were.
tries() { grep -c "^$1 " "$list" 2>/dev/null || true; }

packages=$(tries package) guests=$(tries guest)
echo "ran twice: ${packages:-0} packages of tests (at most $most_packages), ${guests:-0} guests (at most $most_guests)"
if [[ -f $list ]]; then sed 's/^/  /' "$list"; fi
if ((${packages:-0} > most_packages || ${guests:-0} > most_guests)); then
  echo "too much needed a second try: each is a test, or the library, that is at fault now and then"
  exit 1
fi
