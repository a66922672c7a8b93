package conformance

import (
	"fmt"
	"math/big"
)

// Scale is a factor for the numbers of iterations, threads and endpoints. It is a
// flag.Value, as in 1/8.
type Scale struct{ num, den int64 }

// Set implements flag.Value.
func (s *Scale) Set(text string) error {
	r, ok := new(big.Rat).SetString(text)
	if !ok || r.Sign() <= 0 || !r.Num().IsInt64() || !r.Denom().IsInt64() {
		return fmt.Errorf("%q is no scale, such as 1 or 1/8", text)
	}
	s.num, s.den = r.Num().Int64(), r.Denom().Int64()
	return nil
}

func (s *Scale) String() string {
	if s.den == 0 {
		return "1"
	}
	return fmt.Sprintf("%d/%d", s.num, s.den)
}

// of scales n, but not below the smaller of least and n.
func (s Scale) of(n, least int) int {
	if s.den == 0 {
		return n
	}
	return max(int(int64(n)*s.num/s.den), min(n, least))
}
