package token

import "testing"

func BenchmarkTakeAndRelease(b *testing.B) {
	var t Counted
	for b.Loop() {
		if w, ok := t.TryTake(); !ok || !t.ReleaseIf(w) {
			b.Fatal("the token is not free")
		}
	}
}
