package workers

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// job wants a number of turns.
type job struct {
	next  *job
	left  int
	turns []int // in the order of all jobs' turns
	done  sync.WaitGroup
}

func (j *job) link() **job { return &j.next }

func TestJobsAreServedInTurnsUntilTheyAreDone(t *testing.T) {
	var p Pool[job]
	var turn atomic.Int64
	p.Start(func(j *job) {
		j.turns = append(j.turns, int(turn.Add(1)))
		if j.left--; j.left > 0 {
			p.Add(j)
		} else {
			j.done.Done()
		}
	}, (*job).link)
	jobs := make([]job, 5)
	p.Lock() // so that no worker begins before all wait
	var adding sync.WaitGroup
	for i := range jobs {
		jobs[i].left = 20
		jobs[i].done.Add(1)
		adding.Go(func() { p.Add(&jobs[i]) })
	}
	p.Unlock()
	adding.Wait()
	for i := range jobs {
		jobs[i].done.Wait()
		assert.Len(t, jobs[i].turns, 20)
		assert.IsIncreasing(t, jobs[i].turns)
		assert.Nil(t, jobs[i].next)
	}
	assert.True(t, p.Idle())
	p.Stop()
	p.Stop()
}

func TestAWorkerBeginsWhenSomethingWaitsAndNoneIsFree(t *testing.T) {
	var p Pool[job]
	gate, came := make(chan struct{}), make(chan struct{})
	p.Start(func(*job) { came <- struct{}{}; <-gate }, (*job).link)
	assert.Zero(t, p.begun)
	most := runtime.GOMAXPROCS(0)
	jobs := make([]job, most+1)
	for i := range jobs {
		p.Add(&jobs[i])
		if i < most {
			<-came // all workers that have begun are busy
		}
		assert.Equal(t, min(i+1, most), p.begun)
	}
	close(gate)
	<-came
	for free := 0; free < most; runtime.Gosched() {
		p.Lock()
		free = p.free
		p.Unlock()
	}
	p.Add(&jobs[0])
	<-came
	assert.Equal(t, most, p.begun)
	p.Stop()
}

func TestStopServesWhatWaits(t *testing.T) {
	var p Pool[job]
	var served atomic.Int64
	p.Start(func(*job) { served.Add(1) }, (*job).link)
	jobs := make([]job, 100)
	for i := range jobs {
		p.Add(&jobs[i])
	}
	p.Stop()
	assert.EqualValues(t, len(jobs), served.Load())
}

func TestTheFirstInLineIsServedFirst(t *testing.T) {
	var p Pool[job]
	jobs := make([]job, 3)
	p.Start(nil, (*job).link)
	p.begun = runtime.GOMAXPROCS(0) // so that Add starts none
	for i := range jobs {
		p.Add(&jobs[i])
	}
	for i := range jobs {
		assert.False(t, p.Idle())
		assert.Same(t, &jobs[i], p.take())
	}
	assert.True(t, p.Idle())
	p.stopped = true
	assert.Nil(t, p.take())
}
