/* runtime/internal/polling/driver.go and consumed.go: who polls a device, and who sleeps for it.
 *
 * A device completes COMPLETIONS times. CONSUMERS goroutines poll a few times, one at a time by the token, and stop
 * whenever they like; some say so, as a Wait does. The back-stop polls in vain for as long as it likes, arms the
 * device, polls once more and waits; or it leaves the device to consumers that have polled, for a nap that a timer
 * ends. What must hold: when nothing can happen any more, nothing is left in the device.
 *
 * A poll may return a part of what there is. A completion ends a wait only if the device is armed. */

#ifndef COMPLETIONS
#define COMPLETIONS 3
#endif
#ifndef CONSUMERS
#define CONSUMERS 2
#endif

byte inside; /* completions in the device */
bool armed, woken; /* of the device */
bool token, asleep, driven, slept;
chan napend = [1] of { bool };

inline poll(n) {
	d_step { n = (inside > 0); inside = inside - n }
}

inline endwait(was) {
	if
	:: asleep ->
		d_step { was = asleep; asleep = false }
		if
		:: was -> woken = true
		:: else
		fi
	:: else
	fi
}

proctype device() {
	byte i;
	for (i : 1 .. COMPLETIONS) {
		d_step {
			inside++;
			if
			:: armed -> armed = false; woken = true
			:: else
			fi
		}
	}
}

inline pollonce(n, was) {
	if
	:: d_step { !token -> token = true }
		poll(n);
		token = false;
		if
		:: n -> endwait(was)
		:: else
		fi
	:: token
	fi
}

proctype consumer() {
	bool n, was;
	do
	:: driven = true; pollonce(n, was)
	:: pollonce(n, was);
		driven = false;
		slept = true;
		if
		:: !asleep ->
			atomic {
				if
				:: nfull(napend) -> napend!true
				:: full(napend)
				fi
			}
		:: else
		fi
	:: break /* it stops, and tells nobody */
	od
}

proctype backstop() {
	bool n, polled;
	do
	:: d_step { polled = driven; driven = false };
		slept = false;
		n = false;
		if
		:: polled -> /* leave: whether consumers have the device is a guess, and any may be made */
			if
			:: napend?_
#ifndef NO_TIMER_ENDS_THE_NAP
			:: true
#endif
			fi
		:: true ->
			if
			:: d_step { !token -> token = true }
				poll(n); token = false
			:: token
			fi;
			if
			:: n
			:: !n -> /* the price is paid: sleep */
				asleep = true;
				if
				:: d_step { !token -> token = true }
					n = false;
#ifdef ARMS_BEHIND_THE_LAST_POLL
					poll(n);
					armed = true;
#else
					armed = true;
#ifndef SLEEPS_WITHOUT_A_LAST_POLL
					poll(n);
#endif
#endif
					token = false;
					if
					:: n
					:: else ->
end_wait:					d_step { woken -> woken = false }
					fi
				:: token
				fi;
				asleep = false
			:: !n /* or it polls again */
			fi
		fi
	od
}

init {
	byte i;
	atomic {
		run backstop();
		run device();
		for (i : 1 .. CONSUMERS) { run consumer() }
	}
	timeout -> assert(inside == 0)
}
