/* internal/token/token.go: TakeOrKick and Release.
 *
 * POSTERS goroutines give one piece of work each and call TakeOrKick; who has the token looks for work,
 * and releases, until no kick is left. What must hold: one holder at a time; in the end the token is free, no kick is left,
 * and all work has been seen. */

#ifndef POSTERS
#define POSTERS 4
#endif

bool held, kicked; /* the word: a compare-and-swap compares both */
byte given;        /* pieces of work */
byte seen;         /* those that a holder has seen */
byte holders;
byte over;

/* swap is CompareAndSwap of the word. */
inline swap(was_held, was_kicked, to_held, to_kicked) {
	d_step {
		ok = held == was_held && kicked == was_kicked;
		if
		:: ok -> held = to_held; kicked = to_kicked
		:: else
		fi
	}
}

proctype poster() {
	bool h, k, ok;
	byte n;

	given++;
take:
	atomic { h = held; k = kicked }
	if
	:: !h ->
		swap(h, k, true, k);
		if
		:: ok -> holders++
		:: else -> goto take
		fi
	:: h && k -> goto out
	:: h && !k ->
		swap(h, k, h, true);
		if
		:: ok -> goto out
		:: else -> goto take
		fi
	fi;
look:
	assert(holders == 1);
	n = given;
	seen = n;
#ifdef CLEARED_BEHIND_THE_LOOK /* a kick between the look and the clearing is lost */
	kicked = false;
#endif
release:
	atomic { h = held; k = kicked }
	if
	:: k ->
#ifdef RELEASED_IN_SPITE_OF_A_KICK
		holders--;
		atomic { held = false; kicked = false };
		goto out
#endif
		kicked = false;
		goto look
	:: else ->
#ifdef RELEASED_WITHOUT_A_COMPARISON /* a kick since the load is lost */
		holders--;
		atomic { held = false; kicked = false };
		goto out
#endif
		holders--;
		swap(h, k, false, k);
		if
		:: ok -> goto out
		:: else -> holders++; goto release
		fi
	fi;
out:
	over++
}

init {
	byte i;
	atomic {
		for (i : 1 .. POSTERS) { run poster() }
	}
	over == POSTERS;
	assert(!held && !kicked && seen == given)
}
