package ep

import (
	"slices"
	"time"

	"godat/ep/internal/life"
	"godat/hw"
	"godat/hw/event"
)

// storyLength is how many chapters of a story are kept.
const storyLength = 16

// story is what happened to an endpoint, the oldest first; record.Mu guards it. It grows up to
// its length, which most endpoints never need.
type story []chapter

// chapter is one line of a story.
type chapter struct {
	at     int64  // of the last time, in nanoseconds since 1970
	times  uint32 // how often it happened in a row
	what   what
	op     hw.Op        // whatFailed
	status hw.Status    // whatFailed
	number event.Number // whatEnded
}

// what is what a chapter tells: that an input moved the endpoint to another state, or
// something else.
type what uint8

const (
	whatFailed = what(life.NumInputs) + iota // the device reported that an operation failed
	whatEnded                                // the end of the connection was announced
)

func (c *chapter) String() string {
	switch c.what {
	case whatFailed:
		return c.op.String() + " failed: " + c.status.String()
	case whatEnded:
		return "ended: " + c.number.String()
	default:
		return life.Input(c.what).String()
	}
}

// add adds a chapter, or counts it, if the last one tells the same. The caller holds record.Mu.
func (s *story) add(c chapter) {
	n := len(*s)
	if n > 0 {
		last := &(*s)[n-1]
		if last.what == c.what && last.op == c.op && last.status == c.status {
			last.at = c.at
			last.times++
			return
		}
	}
	if n == storyLength {
		*s = slices.Delete(*s, 0, 1)
	}
	*s = append(*s, c)
}

// StoryLine is one of the last things that happened to an endpoint, a call of the program's
// or a report of the device's. What succeeds on the data path is not among them.
type StoryLine struct {
	At    time.Time // the last time
	Text  string
	Times int // how often in a row
}

// lines tells the story, the oldest chapter first. The caller holds record.Mu.
func (s story) lines() []StoryLine {
	list := make([]StoryLine, len(s))
	for i := range s {
		c := &s[i]
		list[i] = StoryLine{At: time.Unix(0, c.at), Text: c.String(), Times: int(c.times)}
	}
	return list
}
