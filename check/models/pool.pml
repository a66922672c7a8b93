/* mem/bufferwait.go: calls that wait for a buffer of a pool.
 *
 * USERS goroutines want one of BUFFERS buffers, and give it back; some stop waiting; the pool may be closed. Who
 * waits has counted itself, and serves then; who gives a buffer back looks at the count afterwards, and serves. What must
 * hold: nobody waits while a buffer is free or the pool is closed, and in the end all buffers are back. */

#ifndef USERS
#define USERS 3
#endif
#ifndef BUFFERS
#define BUFFERS 1
#endif
#define NONE 0
#define WAITS 1
#define HANDED 2
#define CLOSED 3

byte free = BUFFERS;
byte n;           /* those that wait */
bool dead;
byte state[USERS]; /* the queue, and what a waiter was given */

/* take is a buffer of the list, unless the pool is closed: two looks. */
inline take() {
	if
	:: dead -> got = false
	:: else ->
		atomic {
			if
			:: free > 0 -> free--; got = true
			:: else -> got = false
			fi
		}
	fi
}

/* hand gives the buffer to one that waits, under the queue's lock. */
inline hand() {
	atomic {
		if
		:: state[0] == WAITS -> state[0] = HANDED; n--; got = true
		:: USERS > 1 && state[1] == WAITS -> state[1] = HANDED; n--; got = true
		:: USERS > 2 && state[2] == WAITS -> state[2] = HANDED; n--; got = true
		:: else -> got = false
		fi
	}
}

inline serve() {
	do
	:: n == 0 -> break
	:: else ->
		take();
		if
		:: !got -> break
		:: else
		fi;
		hand();
		if
		:: got
		:: else ->
			free++
#ifdef DOES_NOT_SERVE_AGAIN
			; break
#endif
		fi
	od
}

inline wake_all() {
	d_step {
		for (i : 0 .. USERS - 1) {
			if
			:: state[i] == WAITS -> state[i] = CLOSED
			:: else
			fi
		}
		n = 0
	}
}

proctype user(byte me) {
	bool got, has;
	byte i;

	if
	:: n == 0 -> take(); has = got
	:: else
	fi;
	if
	:: has -> goto use
	:: else
	fi;
#ifdef SERVES_BEFORE_IT_IS_COUNTED
	serve();
	atomic { state[me] = WAITS; n++ };
#else
	atomic { state[me] = WAITS; n++ };
	if
#ifndef DOES_NOT_LOOK_WHETHER_THE_POOL_IS_CLOSED
	:: dead -> wake_all()
#endif
	:: else -> serve()
	fi;
#endif
	if
	:: state[me] == HANDED -> goto use
	:: state[me] == CLOSED -> goto out
	:: atomic { me == 0 && state[me] == WAITS -> state[me] = NONE; n-- }; goto out /* its context has ended */
	fi;
use:
	state[me] = NONE;
	free++;
#ifndef GIVES_BACK_WITHOUT_A_LOOK
	serve();
#endif
out:
	skip
}

proctype closer() {
	byte i;

	if
	:: dead = true; wake_all()
	:: skip
	fi
}

init {
	byte i;
	atomic {
		for (i : 0 .. USERS - 1) { run user(i) }
		run closer()
	}
	_nr_pr == 1;
	assert(free == BUFFERS && n == 0)
}
