/* internal/delivery/turn.go: the turn of a ring's consumers.
 *
 * ITERATORS goroutines want the turn, as a waiter has it, and BUSY ones take it for a moment and leave without a look at
 * those that sleep. Who sleeps has counted itself and looked whether somebody has the turn as a waiter; who
 * leaves as a waiter frees the turn, and then looks whether anybody is counted. Signals share one place: a signal that
 * finds it full is not sent. What must hold: one consumer at a time, and each iterator has its turn. */

#ifndef ITERATORS
#define ITERATORS 3
#endif
#ifndef BUSY
#define BUSY 2
#endif

mtype = { free, busy, iterator };
mtype word = free;
byte queued;
byte consumers;
chan next = [1] of { bool };

inline acquire(as) {
	do
	:: atomic { word == free -> word = as; got = true; break }
	:: word == iterator -> got = false; break
	:: word == busy -> skip /* it is soon over */
	od
}

inline signal() {
	atomic {
		if
		:: nfull(next) -> next!true
		:: full(next)
		fi
	}
}

proctype taker() {
	bool got;

	acquire(busy);
	if
	:: got ->
		consumers++;
		assert(consumers == 1);
		consumers--;
		word = free
	:: else /* refused: somebody waits */
	fi
}

proctype iterates() {
	bool got;

	do
	:: true ->
		acquire(iterator);
		if
		:: got -> break
		:: else
		fi;
		/* await */
#ifdef LOOKS_BEFORE_IT_COUNTS_ITSELF
		if
		:: word != iterator -> skip
		:: else -> queued++; next?_; queued--
		fi
#else
		queued++;
		if
		:: word != iterator -> skip
		:: else -> next?_
		fi;
		queued--
#endif
	od;
	consumers++;
	assert(consumers == 1);
	consumers--;
	/* release, and signal */
#ifdef SIGNALS_BEFORE_IT_RELEASES
	if
	:: queued != 0 -> signal()
	:: else
	fi;
	word = free
#else
	word = free;
#ifndef RELEASES_WITHOUT_A_SIGNAL
	if
	:: queued != 0 -> signal()
	:: else
	fi
#endif
#endif
}

init {
	byte i;
	atomic {
		for (i : 1 .. ITERATORS) { run iterates() }
		for (i : 1 .. BUSY) { run taker() }
	}
}
