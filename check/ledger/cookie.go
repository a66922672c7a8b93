package ledger

// A cookie names an entry of the books and looks random: all its bits vary, so the
// books notice when a provider loses some of them.
//
//	tag:8 | scrambled(check:4 | account:24 | page:6 | entry:22)
//
// Dispatchers route by the tag. No route takes tags from untagged on.
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

// The scrambler multiplies by an odd number modulo 2^56; the unscrambler undoes it.
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

// encode returns the cookie of an entry.
func encode(salt uint64, tag uint8, account, page, entry uint32) uint64 {
	x := uint64(account)<<accountPos | uint64(page)<<entryBits | uint64(entry)
	x = (x ^ salt) & codeMask
	x = x * scrambler & codeMask
	x ^= x >> halfOfCode
	x = x * scrambler & codeMask
	return uint64(tag)<<tagShift | x
}

// decode returns what a cookie names; ok is false if its check bits are wrong, as
// they are in 15 of 16 numbers that encode has not made.
func decode(salt, cookie uint64) (account, page, entry uint32, ok bool) {
	x := cookie & codeMask
	x = x * unscrambler & codeMask
	x ^= x >> halfOfCode
	x = x * unscrambler & codeMask
	x = (x ^ salt) & codeMask
	account = uint32(x >> accountPos)
	return account, uint32(x>>entryBits) & (1<<pageBits - 1), uint32(x) & (1<<entryBits - 1), account <= maxAccount
}
