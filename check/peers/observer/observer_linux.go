package observer

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
)

func init() {
	if os.Getenv(Env) != "" {
		go answer(os.NewFile(3, "questions"), json.NewEncoder(os.NewFile(4, "answers")))
	}
}

// answer answers until the judge has gone, and ends the process then.
func answer(questions io.Reader, answers *json.Encoder) {
	var question [1]byte
	for {
		if _, err := questions.Read(question[:]); err != nil {
			os.Exit(0)
		}
		switch question[0] {
		case Count:
			_ = answers.Encode(count()) // the judge finds out
		case Dump:
			stacks := make([]byte, 1<<20)
			_, _ = os.Stderr.Write(stacks[:runtime.Stack(stacks, true)])
			_ = answers.Encode(Usage{})
		}
	}
}

// count counts what the process holds once its garbage is gone.
func count() (u Usage) {
	debug.FreeOSMemory()
	u.Goroutines = runtime.NumGoroutine()
	if open, err := os.ReadDir("/proc/self/fd"); err == nil {
		u.Descriptors = len(open)
	}
	status, _ := os.ReadFile("/proc/self/status")
	for line := range bytes.Lines(status) {
		if of, ok := bytes.CutPrefix(line, []byte("RssAnon:")); ok {
			u.Resident, _ = strconv.Atoi(string(bytes.Fields(of)[0]))
		}
	}
	return u
}
