package iwarp

import (
	"net"
	"net/netip"

	"godat/hw"
)

// localHost is the address or host that a device's name stands for.
func localHost(name string) (string, error) {
	const op = "iwarp.Open"
	if name == "" || name == Name {
		return name, nil
	}
	if _, err := netip.ParseAddr(name); err == nil {
		return name, nil
	}
	if ifc, err := net.InterfaceByName(name); err == nil {
		return interfaceAddress(op, ifc)
	}
	if _, err := net.LookupHost(name); err != nil {
		return "", hw.Errorf(op, hw.InvalidAddress, hw.AddressUnsupported, "%q is no address, network interface or host name of this system: %w", name, err)
	}
	return name, nil
}

// interfaceAddress is the first address of an interface that is not link-local, or else
// its first link-local one.
func interfaceAddress(op string, ifc *net.Interface) (string, error) {
	addrs, err := ifc.Addrs()
	if err != nil {
		return "", hw.Errorf(op, hw.InvalidAddress, hw.AddressUnsupported, "the interface %q: %w", ifc.Name, err)
	}
	linkLocal := ""
	for _, a := range addrs {
		n, ok := a.(*net.IPNet)
		switch {
		case !ok:
		case !n.IP.IsLinkLocalUnicast():
			return n.IP.String(), nil
		case linkLocal == "":
			linkLocal = n.IP.String()
			if n.IP.To4() == nil {
				linkLocal += "%" + ifc.Name
			}
		}
	}
	if linkLocal == "" {
		return "", hw.Errorf(op, hw.InvalidAddress, hw.AddressUnsupported, "the interface %q has no address", ifc.Name)
	}
	return linkLocal, nil
}
