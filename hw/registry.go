package hw

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// MaxName is the longest name, in bytes: DAT_NAME_MAX_LENGTH less the terminator.
const MaxName = 255

// Info identifies a provider: DAT_PROVIDER_INFO.
type Info struct {
	Name         string
	Major, Minor int // the version of the DAT API that it implements
	ThreadSafe   bool
}

// Informer is a Provider that tells more about itself than its name. Other
// providers count as thread-safe ones of DAT 2.0, as the contract wants them.
type Informer interface {
	// Info returns the same in every call. [InfoOf] sets Name by itself.
	Info() Info
}

// InfoOf returns p's Info: its own if p is an [Informer], otherwise the default one.
func InfoOf(p Provider) Info {
	info := Info{Major: 2, ThreadSafe: true}
	if i, ok := p.(Informer); ok {
		info = i.Info()
	}
	info.Name = p.Name()
	return info
}

// registry holds the providers, in a list because they are few.
var registry struct {
	sync.Mutex
	entries []*registered
}

type registered struct {
	info     Info
	provider Provider
	users    int // calls of Acquire that were not released
}

// Register makes a provider known by its name, as a driver does from init. It fails
// with PROVIDER_ALREADY_REGISTERED if there is one of that name and version, and
// with INVALID_PARAMETER if the name is empty, is longer than [MaxName], or has a
// slash, colon or space. It answers to dat_registry_add_provider.
func Register(p Provider) error {
	const op = "hw.Register"
	if p == nil || p.Name() == "" || len(p.Name()) > MaxName || strings.ContainsAny(p.Name(), "/: ") {
		return Errorf(op, InvalidParameter, Arg1, "a provider needs a name of at most %d bytes without slash, colon or space", MaxName)
	}
	info := InfoOf(p)
	registry.Lock()
	defer registry.Unlock()
	for _, r := range registry.entries {
		if r.info.Name == info.Name && r.info.Major == info.Major && r.info.Minor == info.Minor {
			return Errorf(op, ProviderAlreadyRegistered, NoSubtype, "provider %q, version %d.%d", info.Name, info.Major, info.Minor)
		}
	}
	registry.entries = append(registry.entries, &registered{info: info, provider: p})
	slices.SortStableFunc(registry.entries, func(a, b *registered) int { return compareInfo(a.info, b.info) })
	return nil
}

// MustRegister is Register for an init function: it panics on an error.
func MustRegister(p Provider) {
	if err := Register(p); err != nil {
		panic(err)
	}
}

// Unregister removes all versions of a provider. While a caller of [Acquire] holds
// one of them, it fails with PROVIDER_IN_USE and removes none. It answers to
// dat_registry_remove_provider.
func Unregister(name string) error {
	const op = "hw.Unregister"
	registry.Lock()
	defer registry.Unlock()
	users, versions := 0, 0
	for _, r := range registry.entries {
		if r.info.Name == name {
			versions++
			users += r.users
		}
	}
	if versions == 0 {
		return Errorf(op, ProviderNotFound, NameNotRegistered, "provider %q", name)
	}
	if users != 0 {
		return Errorf(op, ProviderInUse, NoSubtype, "%d interface adapters are open on provider %q", users, name)
	}
	registry.entries = slices.DeleteFunc(registry.entries, func(r *registered) bool { return r.info.Name == name })
	return nil
}

// Lookup finds a provider by name; of several versions, the newest.
func Lookup(name string) (Provider, bool) {
	registry.Lock()
	defer registry.Unlock()
	r, err := find(Info{Name: name})
	if err != nil {
		return nil, false
	}
	return r.provider, true
}

// Acquire finds a provider as [Match] does, and keeps it registered until the caller
// calls release. To call release again has no effect.
func Acquire(want Info) (p Provider, release func(), err error) {
	registry.Lock()
	defer registry.Unlock()
	r, err := find(want)
	if err != nil {
		return nil, nil, err
	}
	r.users++
	return r.provider, sync.OnceFunc(r.release), nil
}

func (r *registered) release() {
	registry.Lock()
	defer registry.Unlock()
	r.users--
}

// find looks for a provider. The registry is locked.
func find(want Info) (*registered, error) {
	i, err := Match(infos(), want)
	if err != nil {
		return nil, err
	}
	return registry.entries[i], nil
}

// infos lists the registry. The registry is locked.
func infos() []Info {
	list := make([]Info, len(registry.entries))
	for i, r := range registry.entries {
		list[i] = r.info
	}
	return list
}

// Match returns the index in list of the provider that want describes: by name, by
// version unless Major is 0, and by thread-safety if ThreadSafe is set. Of several
// that match it picks the last one of the highest version. If none matches, the
// error is PROVIDER_NOT_FOUND, with the subtype of the first of these conditions
// that no provider meets.
func Match(list []Info, want Info) (int, error) {
	steps := [...]struct {
		sub   Subtype
		meets func(Info) bool
	}{
		{NameNotRegistered, func(i Info) bool { return i.Name == want.Name }},
		{MajorNotFound, func(i Info) bool { return want.Major == 0 || i.Major == want.Major }},
		{MinorNotFound, func(i Info) bool { return want.Major == 0 || i.Minor == want.Minor }},
		{ThreadSafetyNotFound, func(i Info) bool { return i.ThreadSafe || !want.ThreadSafe }},
	}
	furthest, best := 0, -1
	for at, info := range list {
		n := 0
		for n < len(steps) && steps[n].meets(info) {
			n++
		}
		furthest = max(furthest, n)
		if n == len(steps) && (best < 0 || compareInfo(info, list[best]) >= 0) {
			best = at
		}
	}
	if best < 0 {
		return 0, &Error{Type: ProviderNotFound, Sub: steps[furthest].sub, Text: want.text()}
	}
	return best, nil
}

// text describes a wanted provider.
func (i Info) text() string {
	s := fmt.Sprintf("provider %q", i.Name)
	if i.Major != 0 {
		s += fmt.Sprintf(", version %d.%d", i.Major, i.Minor)
	}
	if i.ThreadSafe {
		s += ", thread-safe"
	}
	return s
}

func compareInfo(a, b Info) int {
	return cmp.Or(strings.Compare(a.Name, b.Name), cmp.Compare(a.Major, b.Major), cmp.Compare(a.Minor, b.Minor))
}

// ListProviders lists the registered providers, sorted by name and version.
// It answers to dat_registry_list_providers.
func ListProviders() []Info {
	registry.Lock()
	defer registry.Unlock()
	return infos()
}

// Providers lists the names of the registered providers, sorted, each once.
func Providers() []string {
	var names []string
	for _, i := range ListProviders() {
		names = append(names, i.Name)
	}
	return slices.Compact(names)
}
