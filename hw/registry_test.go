package hw

import (
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// plain is a provider that is no Informer.
type plain string

func (p plain) Name() string                    { return string(p) }
func (p plain) Open(OpenConfig) (Device, error) { return nil, ErrNotImplemented }

// versioned is an Informer.
type versioned struct {
	plain
	info Info
}

func (p versioned) Info() Info { return p.info }

// register registers a provider until the test ends.
func register(t *testing.T, p Provider) {
	t.Helper()
	require.NoError(t, Register(p))
	t.Cleanup(func() { _ = Unregister(p.Name()) })
}

func requireCode(t *testing.T, err error, typ Type, sub Subtype) {
	t.Helper()
	var code *Error
	require.ErrorAs(t, err, &code)
	require.Equal(t, typ, code.Type, "%v", err)
	require.Equal(t, sub, code.Sub, "%v", err)
}

func TestProvidersAreListedByNameAndVersion(t *testing.T) {
	register(t, plain("beta"))
	register(t, versioned{"alpha", Info{Name: "not looked at", Major: 2, Minor: 1}})
	register(t, versioned{"alpha", Info{Major: 1, Minor: 2, ThreadSafe: true}})
	assert.Equal(t, []Info{{"alpha", 1, 2, true}, {"alpha", 2, 1, false}, {"beta", 2, 0, true}}, ListProviders())
	assert.Equal(t, []string{"alpha", "beta"}, Providers())
}

func TestANameIsRegisteredOncePerVersion(t *testing.T) {
	register(t, plain("one"))
	requireCode(t, Register(plain("one")), ProviderAlreadyRegistered, NoSubtype)
	requireCode(t, Register(versioned{"one", Info{Major: 2}}), ProviderAlreadyRegistered, NoSubtype)
	require.NoError(t, Register(versioned{"one", Info{Major: 2, Minor: 1}}))
	assert.PanicsWithError(t, Register(plain("one")).Error(), func() { MustRegister(plain("one")) })
}

func TestRegisterRefusesNames(t *testing.T) {
	for _, p := range []Provider{nil, plain(""), plain("a/b"), plain("a b"), plain("a:b"), plain(strings.Repeat("n", MaxName+1))} {
		requireCode(t, Register(p), InvalidParameter, Arg1)
	}
	register(t, plain(strings.Repeat("n", MaxName)))
}

func TestAProviderIsFoundByNameVersionAndThreadSafety(t *testing.T) {
	register(t, versioned{"p", Info{Major: 1, Minor: 2, ThreadSafe: true}})
	register(t, versioned{"p", Info{Major: 2, Minor: 0, ThreadSafe: true}})
	register(t, versioned{"p", Info{Major: 2, Minor: 1}})
	for name, c := range map[string]struct {
		want Info
		got  Info
		sub  Subtype
	}{
		"any version is the newest":            {Info{Name: "p"}, Info{"p", 2, 1, false}, 0},
		"any thread-safe one is the newest":    {Info{Name: "p", ThreadSafe: true}, Info{"p", 2, 0, true}, 0},
		"a version":                            {Info{Name: "p", Major: 1, Minor: 2}, Info{"p", 1, 2, true}, 0},
		"who asks for less gets a thread-safe": {Info{Name: "p", Major: 2}, Info{"p", 2, 0, true}, 0},
		"another name":                         {Info{Name: "q", Major: 1}, Info{}, NameNotRegistered},
		"another major":                        {Info{Name: "p", Major: 3}, Info{}, MajorNotFound},
		"another minor":                        {Info{Name: "p", Major: 2, Minor: 2}, Info{}, MinorNotFound},
		"a minor of another major":             {Info{Name: "p", Major: 1}, Info{}, MinorNotFound},
		"a version that is not thread-safe":    {Info{Name: "p", Major: 2, Minor: 1, ThreadSafe: true}, Info{}, ThreadSafetyNotFound},
		"the major fails before the safety":    {Info{Name: "p", Major: 3, ThreadSafe: true}, Info{}, MajorNotFound},
		"no name":                              {Info{}, Info{}, NameNotRegistered},
		"a name is not a beginning of another": {Info{Name: "pp"}, Info{}, NameNotRegistered},
		"a minor alone is no version":          {Info{Name: "p", Minor: 7}, Info{"p", 2, 1, false}, 0},
		"a thread-safe version that is wanted": {Info{Name: "p", Major: 2, ThreadSafe: true}, Info{"p", 2, 0, true}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			p, release, err := Acquire(c.want)
			if c.sub != 0 {
				requireCode(t, err, ProviderNotFound, c.sub)
				return
			}
			require.NoError(t, err)
			defer release()
			assert.Equal(t, c.got, InfoOf(p))
		})
	}
	p, ok := Lookup("p")
	require.True(t, ok)
	assert.Equal(t, 1, InfoOf(p).Minor)
	_, ok = Lookup("q")
	assert.False(t, ok)
}

func TestAProviderInUseIsNotRemoved(t *testing.T) {
	register(t, plain("used"))
	register(t, plain("idle"))
	_, release, err := Acquire(Info{Name: "used"})
	require.NoError(t, err)
	_, second, err := Acquire(Info{Name: "used", Major: 2})
	require.NoError(t, err)
	release()
	release() // has no effect
	requireCode(t, Unregister("used"), ProviderInUse, NoSubtype)
	require.NoError(t, Unregister("idle"))
	assert.Equal(t, []string{"used"}, Providers())
	second()
	require.NoError(t, Unregister("used"))
	requireCode(t, Unregister("used"), ProviderNotFound, NameNotRegistered)
	_, _, err = Acquire(Info{Name: "used"})
	requireCode(t, err, ProviderNotFound, NameNotRegistered)
}

func TestTheRegistryServesManyGoroutines(t *testing.T) {
	register(t, plain("shared"))
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 200 {
				_, release, err := Acquire(Info{Name: "shared"})
				assert.NoError(t, err)
				assert.ErrorIs(t, Unregister("shared"), ErrProviderInUse)
				assert.NotEmpty(t, ListProviders())
				release()
			}
		})
	}
	wg.Wait()
	require.NoError(t, Unregister("shared"))
}
