package owner

import (
	"runtime"
	"sync"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestGoroutinesThatLiveTogetherDiffer(t *testing.T) {
	const n = 50
	var (
		mu   sync.Mutex
		seen = map[uintptr]bool{Goroutine(): true}
		wg   sync.WaitGroup
		all  = make(chan struct{})
	)
	for range n {
		wg.Go(func() {
			me := Goroutine()
			mu.Lock()
			seen[me] = true
			if len(seen) == n+1 {
				close(all)
			}
			mu.Unlock()
			<-all
			runtime.Gosched() // another thread may run it now
			assert.Equal(t, me, Goroutine())
		})
	}
	wg.Wait()
	assert.Len(t, seen, n+1)
	assert.NotContains(t, seen, uintptr(0))
}

func TestTagCostsNothingUnlessBuiltWithRace(t *testing.T) {
	assert.Equal(t, Enabled, unsafe.Sizeof(Tag{}) != 0)
}

func TestTagCatchesAGoroutineThatIsNotTheOwner(t *testing.T) {
	misuses := map[string]func(*Tag){
		"a check without an owner":        func(tag *Tag) { tag.Check() },
		"a release without an owner":      func(tag *Tag) { tag.Release() },
		"a second acquire":                func(tag *Tag) { tag.Acquire(); tag.Acquire() },
		"a check after the release":       func(tag *Tag) { tag.Acquire(); tag.Release(); tag.Check() },
		"a check of another's":            func(tag *Tag) { acquireElsewhere(tag); tag.Check() },
		"a release of another's":          func(tag *Tag) { acquireElsewhere(tag); tag.Release() },
		"an acquire of what another owns": func(tag *Tag) { acquireElsewhere(tag); tag.Acquire() },
	}
	for name, misuse := range misuses {
		t.Run(name, func(t *testing.T) {
			run := func() { misuse(new(Tag)) }
			if Enabled {
				assert.Panics(t, run)
			} else {
				assert.NotPanics(t, run)
			}
		})
	}
}

func TestTagLetsOwnershipMoveFromGoroutineToGoroutine(t *testing.T) {
	var tag Tag
	tag.Acquire()
	tag.Check()
	tag.Release()
	done := make(chan struct{})
	go func() {
		defer close(done)
		tag.Acquire()
		tag.Check()
		tag.Release()
	}()
	<-done
	require.NotPanics(t, func() { tag.Acquire(); tag.Check(); tag.Release() })
}

func acquireElsewhere(tag *Tag) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		tag.Acquire()
	}()
	<-done
}
