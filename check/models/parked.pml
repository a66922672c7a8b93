/* internal/delivery/notify.go and wait.go: the notice, and parked.
 *
 * PRODUCERS goroutines put one event each into a ring; a waiter takes all, by one Wait after the other. A
 * producer claims a place, publishes the event, marks the notice, and looks whether somebody is parked; the waiter
 * clears the notice, looks, parks, looks once more behind all claimed places, and sleeps for a token. What must hold:
 * the waiter gets all events (no state without a successor is left, but the last), and the token's channel, of
 * one place, never keeps a producer. */

#ifndef PRODUCERS
#define PRODUCERS 3
#endif

byte claimed, published, taken;
bool notice, parked;
chan token = [1] of { bool };

/* A producer may be slow to publish: its place is claimed then, and later ones may be filled before. The ring is
 * ready as far as places are filled in order. */
bool filled[PRODUCERS];

inline publish(at) {
	d_step {
		filled[at] = true;
		do
		:: published < PRODUCERS && filled[published] -> published++
		:: else -> break
		od
	}
}

proctype producer() {
	byte at;
	bool was, late;

	d_step { at = claimed; claimed++ }
	if
	:: publish(at); notice = true
	:: notice -> late = true /* it stores nothing more by a locked instruction: others see the event behind its looks */
	fi;
	/* wake */
	if
	:: parked ->
		if
		:: notice ->
			d_step { was = parked; parked = false }
			if
			:: was -> assert(nfull(token)); token!true /* of several, the one that wins sends */
			:: else
			fi
		:: else
		fi
	:: else
	fi;
	if
	:: late -> publish(at)
	:: else
	fi
}

proctype waiter() {
	byte upto;

	do
	:: taken == PRODUCERS -> break
	:: else ->
		/* recount: clear, wait for claimed places, count */
		notice = false;
		upto = claimed;
		published >= upto;
		if
		:: published > taken -> taken++
		:: else ->
			/* park */
			parked = true;
#ifndef SLEEPS_WITHOUT_A_LAST_LOOK
			upto = claimed;
#ifndef THE_LAST_LOOK_DOES_NOT_WAIT_FOR_CLAIMED_PLACES
			published >= upto;
#endif
			if
			:: notice && published > taken ->
				/* unpark: who has taken parked away sends a token */
				d_step { upto = parked; parked = false }
				if
				:: !upto ->
#ifndef LEAVES_A_TOKEN_THAT_IS_ON_ITS_WAY
					token?_
#endif
				:: else
				fi
			:: else -> token?_
			fi
#else
			token?_
#endif
		fi
	od
}

init {
	byte i;
	atomic {
		run waiter();
		for (i : 1 .. PRODUCERS) { run producer() }
	}
}
