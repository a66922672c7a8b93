package line

// PostExtra posts one of them. It takes the memory of p from Segments, and has no one-shot.
func PostExtra(b *Mailbox, p Post) error {
	x := extra{p.Immediate, operands{p.Operand, p.Compare}}
	return post(b, &work{op: p.Op, flags: p.Flags, cookie: p.Cookie, segs: p.Segments, remote: p.Remote, ext: &x}, nil)
}
