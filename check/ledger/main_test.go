package ledger

import (
	"flag"
	"os"
	"strconv"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// The flags -ledger.ops and -ledger.seed have the defaults LEDGER_OPS and
// LEDGER_SEED from the environment, for runs whose flags would reach other
// packages, too.
var (
	opsFlag  = flag.Int64("ledger.ops", number("LEDGER_OPS", 0), "posts to account for, on each provider; 0: as many as take seconds")
	seedFlag = flag.Uint64("ledger.seed", uint64(number("LEDGER_SEED", 0)), "decides the program's choices; 0 picks one")

	patienceFlag = flag.Duration("ledger.patience", time.Minute, "how long something that must happen may take")
)

// seed is the seed of this run.
var seed uint64

func TestMain(m *testing.M) {
	flag.Parse()
	if *opsFlag == 0 {
		*opsFlag = scaledDown()
	}
	if seed = *seedFlag; seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	goleak.VerifyTestMain(m, goleak.IgnoreCurrent())
}

// number is the number in an environment variable, or otherwise if there is none.
func number(name string, otherwise int64) int64 {
	n, err := strconv.ParseInt(os.Getenv(name), 10, 64)
	if err != nil {
		return otherwise
	}
	return n
}

// scaledDown is the number of posts of a run for which neither flag nor variable
// says one.
func scaledDown() int64 {
	switch {
	case testing.Short():
		return 5_000
	case underRace:
		return 20_000
	}
	return 100_000
}

// links is [Config.Links]: with -short half of the default, since each link lives one
// life at least.
func links() int {
	if testing.Short() {
		return 6
	}
	return 0
}
