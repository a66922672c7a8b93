package ledger

// A cookie names a post to the books, and looks like nothing: all its bits vary,
// so that one that loses some of them on its way is noticed.
//
//	tag:8 | scrambled(check:4 | account:24 | page:6 | entry:22)
//
// The tag is what dispatchers route by. Those from untagged on no route takes.
const (
	tagShift   = 56
	codeBits   = 56
	codeMask   = 1<<codeBits - 1
	entryBits  = 22
	pageBits   = 6
	accountPos = entryBits + pageBits
	maxAccount = 1<<24 - 1

	routeMask = 0xff << tagShift
	untagged  = 0x80
)

// Multiplying by an odd number and back, modulo 2^56.
const (
	scrambler   = 0x9e3779b97f4a7d
	halfOfCode  = codeBits / 2
	newtonSteps = 6
)

// unscrambler is the inverse of scrambler modulo 2^56.
var unscrambler = func() uint64 {
	x := uint64(scrambler)
	for range newtonSteps {
		x *= 2 - scrambler*x
	}
	return x & codeMask
}()

// encode makes a cookie.
func encode(salt uint64, tag uint8, account, page, entry uint32) uint64 {
	x := uint64(account)<<accountPos | uint64(page)<<entryBits | uint64(entry)
	x = (x ^ salt) & codeMask
	x = x * scrambler & codeMask
	x ^= x >> halfOfCode
	x = x * scrambler & codeMask
	return uint64(tag)<<tagShift | x
}

// decode is what a cookie names; ok is false for what no encode has made.
func decode(salt, cookie uint64) (account, page, entry uint32, ok bool) {
	x := cookie & codeMask
	x = x * unscrambler & codeMask
	x ^= x >> halfOfCode
	x = x * unscrambler & codeMask
	x = (x ^ salt) & codeMask
	account = uint32(x >> accountPos)
	return account, uint32(x>>entryBits) & (1<<pageBits - 1), uint32(x) & (1<<entryBits - 1), account <= maxAccount
}
