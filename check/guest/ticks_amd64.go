package guest

// ticks reads the processor's time-stamp counter, which the emulated processors have too.
func ticks() uint64
