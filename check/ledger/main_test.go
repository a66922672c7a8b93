package ledger

import (
	"flag"
	"os"
	"strconv"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// -ledger.ops and -ledger.seed, or LEDGER_OPS and LEDGER_SEED in the environment
// where flags would reach other packages, too.
var (
	opsFlag  = flag.Int64("ledger.ops", number("LEDGER_OPS", 0), "posts to account for, on each provider; 0: as many as take seconds")
	seedFlag = flag.Uint64("ledger.seed", uint64(number("LEDGER_SEED", 0)), "decides the program's choices; 0 picks one")

	patienceFlag = flag.Duration("ledger.patience", time.Minute, "how long something that must happen may take")
)

// seed is this run's.
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

// number is an environment variable's.
func number(name string, otherwise int64) int64 {
	n, err := strconv.ParseInt(os.Getenv(name), 10, 64)
	if err != nil {
		return otherwise
	}
	return n
}

// scaledDown is how many posts a run accounts for that is not told otherwise.
func scaledDown() int64 {
	switch {
	case testing.Short():
		return 10_000
	case underRace:
		return 20_000
	}
	return 100_000
}
