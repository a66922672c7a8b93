package sock

// word is the state of a [Right].
//
//	63…40: needs   39…21: turns   20…10: asks   9…6: doubt   5: hung   4: wanted   3: reading   2…0: phase
type word uint64

const (
	phaseMask word = 7
	reading   word = 1 << 3 // somebody has the right
	wanted    word = 1 << 4 // the receiver's goroutine or the watcher waits for it
	hung      word = 1 << 5 // the stream has ended, or the socket has failed

	oneDoubt word = 1 << 6 // how often the socket did not stay with watchers
	doubts   word = 15 * oneDoubt
	oneAsk   word = 1 << 10 // waits that the receiver's goroutine has seen to
	asks     word = 2047 * oneAsk
	oneTurn  word = 1 << 21 // how often a watcher has left
	turns    word = 1<<40 - oneTurn
	oneNeed  word = 1 << 40 // goroutines that sleep in another way
)

// mostDoubt bounds how often patience doubles.
const mostDoubt = 8

// The phases say who waits for octets in the socket.
const (
	none    word = 1 + iota // nobody, and the receiver's goroutine has the right
	own                     // the receiver's goroutine
	asked                   // the same, and a goroutine has asked it for the socket
	free                    // nobody: the last watcher has left
	watched                 // a watcher
	quiet                   // a watcher, which wakes the receiver's goroutine when it leaves
	phases
)

// event is what changes the phase.
type event uint8

const (
	begin   event = iota // the receiver's goroutine is going to wait
	end                  // it will not wait any more
	wish                 // a goroutine wants to wait in the socket
	refuse               // the receiver's goroutine keeps it
	grant                // the receiver's goroutine lends it
	leave                // the watcher leaves it
	restore              // the watcher gives it back
	reclaim              // it is not to stay free
	look                 // the receiver's goroutine has found nothing changed for a tick
	events
)

// moves has the phase to which an event leads. Other events leave the phase as it is.
var moves = [phases][events]word{
	none:    {begin: own},
	own:     {wish: asked, end: none},
	asked:   {refuse: own, grant: watched, end: none},
	free:    {wish: watched, reclaim: own, look: own},
	watched: {leave: free, restore: own, look: quiet},
	quiet:   {leave: free, restore: own},
}

func (w word) phase() word { return w & phaseMask }

// on is the word after the event.
func (e event) on(w word) word {
	if to := moves[w.phase()][e]; to != 0 {
		return w&^phaseMask | to
	}
	return w
}

// wakes reports whether the receiver's goroutine sleeps and has to look at the word.
func wakes(from, to word) bool {
	p, q := from.phase(), to.phase()
	return (p == free || p == watched) && q == own || p == quiet && q != quiet
}

// wished is the word after a goroutine has wished to wait in the socket: it takes a free one, and
// asks the receiver's goroutine for its own after as many waits as patience says.
func (w word) wished(patience word) word {
	if w.phase() == own {
		if w >= oneNeed {
			return w
		}
		if w&asks/oneAsk+1 < patience<<(w&doubts/oneDoubt) {
			return w + oneAsk
		}
	}
	return wish.on(w)
}

// left is the word after the watcher has left.
func (w word) left() word {
	w = leave.on(w.turned())
	if w >= oneNeed {
		w = w.reclaimed()
	}
	return w
}

// returned is the word after the watcher has given the socket back.
func (w word) returned() word { return restore.on(w.turned()) }

func (w word) turned() word { return w&^turns | (w+oneTurn)&turns }

// reclaimed is the word after a free socket came back. The next watcher waits longer for it: it
// did not stay with the last.
func (w word) reclaimed() word {
	to := reclaim.on(w)
	if to == w {
		return w
	}
	return to.doubted()
}

func (w word) doubted() word {
	w &^= asks
	if w&doubts < mostDoubt*oneDoubt {
		w += oneDoubt
	}
	return w
}

func (w word) needed() word { return (w + oneNeed).reclaimed() }

func (w word) hungUp() word { return (w | hung).needed() }

// looked is the word after a look of the receiver's goroutine, which has seen last before.
func (w word) looked(last word) word {
	const same = phaseMask | turns
	switch {
	case w.phase() == own || w.phase() == asked:
		return w
	case w&same != last&same: // watchers come again and again
		return w &^ doubts
	case w.phase() == free:
		return look.on(w).doubted()
	}
	return look.on(w)
}
