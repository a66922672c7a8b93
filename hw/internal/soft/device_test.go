package soft

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
)

// offered is a request of a new device that the program has taken.
func offered(t *testing.T, refuse func()) (*Device, *Request) {
	d := new(Device)
	d.Init(Config{Provider: "soft", Attr: Common(hw.Attr{})})
	r := new(Request)
	require.False(t, r.Offer(d, refuse, func() bool { return true }))
	return d, r
}

func TestTheEndOfADeviceWaitsForAnAnswerThatIsUnderWay(t *testing.T) {
	for name, answer := range map[string]func(r *Request, act func()) error{
		"Reject": func(r *Request, act func()) error { return r.Reject(nil, func([]byte) { act() }) },
		"Accept": func(r *Request, act func()) error { return r.Accept(nil, nil, act) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d, r := offered(t, func() { assert.Fail(t, "the program answers it") })
				inside, on := make(chan struct{}), make(chan struct{})
				go func() {
					_ = answer(r, func() {
						close(inside)
						<-on
					})
				}()
				<-inside
				ended := false
				go func() {
					assert.NoError(t, d.End())
					ended = true
				}()
				synctest.Wait()
				require.False(t, ended, "the provider may still begin something for the answer")
				close(on)
				synctest.Wait()
				assert.True(t, ended)
			})
		})
	}
}

func TestADeviceThatEndsAnswersInTheProgramsPlace(t *testing.T) {
	refused := 0
	d, r := offered(t, func() { refused++ })
	require.NoError(t, d.End())
	assert.Equal(t, 1, refused)
	require.ErrorIs(t, r.Reject(nil, func([]byte) { assert.Fail(t, "it was answered") }), hw.ErrInvalidHandle)
	require.ErrorIs(t, r.Accept(nil, nil, func() { assert.Fail(t, "it was answered") }), hw.ErrInvalidHandle)
	assert.True(t, new(Request).Offer(d, func() {}, func() bool { return true }), "the provider declines what comes late")
}
