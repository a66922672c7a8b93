/* runtime/stream/send.go: the credits of a stream's messages.
 *
 * Two ends send BYTES messages with bytes each, and a FIN. Each has posted RECEIVES receives; a message tells how
 * many there have been in all, and uses one. An end leaves credits for what must not wait: bytes leave one for a report
 * and one for the FIN, a report that grants half of the receives leaves one, the FIN none. What must hold: no message
 * comes without a receive, and both ends send all they have. */

#ifndef RECEIVES
#define RECEIVES 6
#endif
#ifndef BYTES
#define BYTES 7
#endif

byte sent[2], got[2];    /* messages */
byte granted[2];         /* receives of the peer that an end knows of */
byte told[2];            /* receives of its own that it has told */
byte left[2];            /* messages with bytes that are not sent yet */
bool fin[2], finished[2]; /* its FIN was sent; the peer's has come */

chan way0 = [20] of { byte, bool };
chan way1 = [20] of { byte, bool };

/* credits of end e, behind that which is kept for the FIN, and kept more. */
#ifdef KEEPS_NOTHING_FOR_THE_FIN
#define credits(e, kept) (granted[e] > sent[e] + kept)
#else
#define credits(e, kept) (granted[e] > sent[e] + kept + (fin[e] -> 0 : 1))
#endif
#ifdef GRANTS_WHEN_ALL_ARE_USED
#define grants_due(e) (RECEIVES + got[e] - told[e] >= RECEIVES)
#else
#define grants_due(e) (RECEIVES + got[e] - told[e] >= RECEIVES / 2)
#endif

inline post(e, out, is_fin) {
	sent[e]++;
	told[e] = RECEIVES + got[e];
	fin[e] = fin[e] || is_fin;
	assert(sent[e] <= RECEIVES + got[1 - e]);
	out!told[e], is_fin
}

proctype party(byte e; chan in, out) {
	byte g;
	bool f;

	do
#ifdef BYTES_LEAVE_NOTHING_FOR_A_REPORT
	:: atomic { left[e] > 0 && credits(e, 0) -> left[e]--; post(e, out, false) }
#else
	:: atomic { left[e] > 0 && credits(e, 1) -> left[e]--; post(e, out, false) }
#endif
#ifdef A_REPORT_LEAVES_TWO
	:: atomic { grants_due(e) && credits(e, 1) -> post(e, out, false) }
#else
	:: atomic { grants_due(e) && credits(e, 0) -> post(e, out, false) }
#endif
	:: atomic { left[e] == 0 && !fin[e] -> post(e, out, true) }
	:: atomic {
		in?g, f ->
		got[e]++;
		granted[e] = (g > granted[e] -> g : granted[e]);
		finished[e] = finished[e] || f
	   }
	:: atomic { fin[e] && finished[e] && empty(in) -> break }
	od
}

init {
	atomic {
		granted[0] = RECEIVES; granted[1] = RECEIVES;
		told[0] = RECEIVES; told[1] = RECEIVES;
		left[0] = BYTES; left[1] = BYTES;
		run party(0, way1, way0);
		run party(1, way0, way1)
	}
	_nr_pr == 1;
	assert(left[0] == 0 && left[1] == 0)
}
