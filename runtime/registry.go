package runtime

import (
	"errors"
	"maps"
	"path"
	"strings"

	"godat/hw"
)

// Providers lists what [Open] opens by name: the registered providers, and those names
// of DAT's static registry whose provider is registered. An error
// tells of the static registry; the list is still good. It answers to
// dat_registry_list_providers.
//
// The static registry is the file that the environment variable DAT_OVERRIDE names, or else /etc/dat.conf. A
// line of it has eight fields, between blanks:
//
//	name  u2.0  threadsafe  default  library  id.2.0  "ia params"  "platform params"
//
// The second field begins with u or k, which is for kernels; the third may also be nonthreadsafe, the fourth
// nondefault. A field in double quotes may be empty and may contain blanks; a backslash
// in it takes the next character literally. A # at the beginning of a field makes the
// rest of the line a comment. Lines that break these rules are left out; the error,
// INVALID_PARAMETER, gives the number of each, and what is wrong with it. A file that DAT_OVERRIDE names and
// that is not there, and one that can't be read, are INTERNAL_ERROR.
func Providers() ([]hw.Info, error) {
	list := hw.ListProviders()
	entries, err := staticRegistry()
	for _, e := range entries {
		_, known := hw.Lookup(e.provider())
		if _, hidden := hw.Lookup(e.Name); known && !hidden && !e.Kernel {
			list = append(list, e.info())
		}
	}
	return list, err
}

// source is what Open opens: a provider, which stays registered until release is
// called, one of its devices, and parameters.
type source struct {
	provider hw.Provider
	release  func()
	device   string
	params   map[string]string
}

// find finds the provider of a name: the one that cfg gives, if any; one that is
// registered; or one to which the static registry leads.
func find(op, name string, cfg *config) (source, error) {
	switch {
	case name == "":
		return source{}, hw.Errorf(op, hw.InvalidParameter, hw.Arg1, "an empty name; registered: %s", strings.Join(hw.Providers(), ", "))
	case len(name) > hw.MaxName:
		return source{}, hw.Errorf(op, hw.InvalidParameter, hw.Arg1, "a name of %d bytes; it may have %d", len(name), hw.MaxName)
	}
	kind, device, _ := strings.Cut(name, ":")
	s := source{device: device, params: cfg.params}
	want := cfg.want
	want.Name = kind
	var err error
	if s.provider = cfg.provider; s.provider == nil {
		s.provider, s.release, err = hw.Acquire(want)
	} else {
		if s.provider.Name() != kind {
			return source{}, hw.Errorf(op, hw.InvalidParameter, hw.Arg1, "%q is no name for provider %q", name, s.provider.Name())
		}
		s.release = func() {}
		_, err = hw.Match([]hw.Info{hw.InfoOf(s.provider)}, want)
	}
	if errors.Is(err, &hw.Error{Type: hw.ProviderNotFound, Sub: hw.NameNotRegistered}) {
		want.Name = name
		return findStatic(op, want, cfg.params)
	}
	if err != nil {
		code, _ := errors.AsType[*hw.Error](err)
		return source{}, hw.Errorf(op, code.Type, code.Sub, "%s", code.Text)
	}
	return s, nil
}

// findStatic finds the provider behind a name of the static registry.
func findStatic(op string, want hw.Info, params map[string]string) (source, error) {
	entries, fileErr := staticRegistry()
	var behind []registryEntry
	var infos []hw.Info
	for _, e := range entries {
		if e.Kernel {
			continue
		}
		info := e.info()
		// The entry tells whether the C library is thread-safe. What counts is the Go
		// provider that Open opens in its place.
		if p, ok := hw.Lookup(e.provider()); ok {
			info.ThreadSafe = hw.InfoOf(p).ThreadSafe
		}
		behind, infos = append(behind, e), append(infos, info)
	}
	i, err := hw.Match(infos, want)
	if err != nil {
		code, _ := errors.AsType[*hw.Error](err)
		text := code.Text + "; registered: " + strings.Join(hw.Providers(), ", ") + howToRegister(kindOf(want.Name))
		if fileErr != nil {
			return source{}, hw.Errorf(op, code.Type, code.Sub, "%s; %w", text, fileErr)
		}
		return source{}, hw.Errorf(op, code.Type, code.Sub, "%s", text)
	}
	e := behind[i]
	provider, release, err := hw.Acquire(hw.Info{Name: e.provider()})
	if err != nil {
		return source{}, hw.Errorf(op, hw.ProviderNotFound, hw.NameNotRegistered,
			"%q is for library %s; nothing registered stands for it (%w)", e.Name, e.Library, err)
	}
	s := source{provider: provider, release: release}
	s.device, s.params = e.settings(params)
	return s, nil
}

// kindOf is the provider's part of a name.
func kindOf(name string) string {
	kind, _, _ := strings.Cut(name, ":")
	return kind
}

// howToRegister says how a provider becomes registered.
func howToRegister(kind string) string {
	if kind == "ibv" {
		return `; "ibv" is by import _ "godat/hw/ibv"`
	}
	return " (by the import of its package a provider is)"
}

// ownLibrary is the prefix that stands in a library's field for a provider of this
// library: "godat/loop".
const ownLibrary = "godat/"

// provider is the name of the provider that does what the entry's library does for C
// programs. DAPL's libraries over verbs, with any connection manager, have one
// counterpart: ibv. It is empty for an unknown library.
func (e registryEntry) provider() string {
	if own, ok := strings.CutPrefix(e.Library, ownLibrary); ok {
		return own
	}
	base, _, _ := strings.Cut(path.Base(e.Library), ".so")
	switch base {
	case "libdaplofa", "libdaploscm", "libdaploucm", "libdaplcma", "libdaplscm":
		return "ibv"
	}
	return ""
}

// settings returns the device and the parameters that the entry's ia_params and
// platform_params give the provider. The first word of ia_params is the device: its
// name, its network interface's, or its address. A second word without "=" is the port;
// 0 leaves the port to the device. Further words of either are key=value, or a key
// alone. The program's own parameters take precedence.
func (e registryEntry) settings(own map[string]string) (device string, params map[string]string) {
	params = make(map[string]string)
	words := strings.Fields(e.Params)
	if len(words) > 0 {
		device, words = words[0], words[1:]
	}
	if len(words) > 0 && !strings.Contains(words[0], "=") {
		if words[0] != "0" {
			params["port"] = words[0]
		}
		words = words[1:]
	}
	for _, w := range append(words, strings.Fields(e.PlatformParams)...) {
		key, value, _ := strings.Cut(w, "=")
		params[key] = value
	}
	maps.Copy(params, own)
	if len(params) == 0 {
		return device, nil
	}
	return device, params
}
