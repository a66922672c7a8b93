/* hw/iwarp/request.go and tagged.go: a fenced request waits for the reads before it, and a read beyond the limit for one
 * that ends.
 *
 * The sender has the token; it sends requests in order until one has to wait, and releases. The receiver retires a
 * read, and takes the token or kicks its holder, who looks again. The token is that of token.pml, whose steps are one each here.
 * What must hold: a fenced request begins behind all reads before it, no more than LIMIT reads are under way, and all requests are
 * sent. */

#define LIMIT 2
#define REQUESTS 6
#define READ 0
#define FENCED 1

byte kind[REQUESTS];
byte next;          /* the request that is to be sent */
byte pushed, done;  /* reads */
bool held, kicked;
bool posted;        /* the requests are there */

#define outstanding (pushed - done)

inline take_or_kick() {
	atomic {
		if
		:: !held -> held = true; mine = true
		:: else -> kicked = true; mine = false
		fi
	}
}

/* work sends what may be sent, and releases the token. */
inline work() {
	do
	:: true ->
		do
		:: next == REQUESTS || !posted -> break
		:: next < REQUESTS && posted && kind[next] == FENCED ->
			if
#ifdef A_FENCE_LOOKS_AT_THE_LIMIT_ONLY
			:: outstanding >= LIMIT -> break
#else
			:: outstanding > 0 -> break
#endif
			:: else -> assert(outstanding == 0); next++
			fi
		:: next < REQUESTS && posted && kind[next] == READ ->
			if
			:: outstanding >= LIMIT -> break
			:: else -> pushed++; assert(outstanding <= LIMIT); next++
			fi
		od;
#ifdef RELEASES_WITHOUT_A_LOOK_AT_THE_KICK
		atomic { held = false; kicked = false };
		break
#else
		atomic {
			if
			:: kicked -> kicked = false
			:: else -> held = false; break
			fi
		}
#endif
	od
}

proctype poster() {
	bool mine;

	posted = true;
	take_or_kick();
	if
	:: mine -> work()
	:: else
	fi
}

proctype receiver() {
	bool mine;
	byte reads, n;

	d_step {
		n = 0;
		do
		:: n < REQUESTS -> reads = reads + (kind[n] == READ -> 1 : 0); n++
		:: else -> break
		od
	}
	do
	:: done == reads -> break
	:: done < reads && outstanding > 0 -> /* a response has come */
#ifdef KICKS_BEFORE_IT_RETIRES
		take_or_kick();
		if
		:: mine -> work()
		:: else
		fi;
		done++
#else
		done++;
		take_or_kick();
		if
		:: mine -> work()
		:: else
		fi
#endif
	od
}

init {
	byte i;
	atomic {
		for (i : 0 .. REQUESTS - 1) {
			if
			:: kind[i] = READ
			:: kind[i] = FENCED
			fi
		}
		run poster();
		run receiver()
	}
	_nr_pr == 1;
	assert(next == REQUESTS && !held && !kicked)
}
