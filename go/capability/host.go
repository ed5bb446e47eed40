package capability

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// hostPorts is a host name or address with ports. The name "**" is every host, nil ports are every port.
type hostPorts struct {
	name  string
	ports []uint16
}

const (
	maxHostName  = 253
	maxHostLabel = 63
	maxPorts     = 32
)

// normalHostPorts returns the normal form of HOST:PORT[,PORT…], or what is wrong with it.
func normalHostPorts(body string) (normal, wrong string) {
	if body == everything {
		return body, ""
	}
	i := strings.LastIndexByte(body, ':')
	if i < 0 || strings.HasSuffix(body, "]") {
		return "", "it names no port"
	}
	name, wrong := normalHost(body[:i])
	if wrong != "" {
		return "", wrong
	}
	ports, wrong := normalPorts(body[i+1:])
	if wrong != "" {
		return "", wrong
	}
	return hostPorts{name: name, ports: ports}.text(), ""
}

// normalHost lower-cases a name and drops one trailing dot, as name servers do. Addresses have one spelling.
func normalHost(s string) (name, wrong string) {
	if s == everything {
		return s, ""
	}
	if inner, ok := strings.CutPrefix(s, "["); ok {
		return normalIPv6(strings.TrimSuffix(inner, "]"))
	}
	s = strings.TrimSuffix(s, ".")
	if s == "" || len(s) > maxHostName {
		return "", "a host name is 1 to 253 characters"
	}
	labels := strings.Split(s, ".")
	for _, label := range labels {
		if !plainLabel(label) {
			return "", "the host label " + quoted(label) + " is not letters, digits and inner hyphens of ASCII (write other letters as xn--)"
		}
	}
	// A last label that begins with a digit is a number to the resolvers of C: 127.1, 0x7f.0.0.1 and 2130706433
	// are all the same address. Only the plain form passes.
	if last := labels[len(labels)-1]; last[0] >= '0' && last[0] <= '9' {
		addr, err := netip.ParseAddr(s)
		if err != nil || !addr.Is4() {
			return "", "a numeric host must be a plain IPv4 address such as 192.0.2.1"
		}
		return addr.String(), ""
	}
	return strings.ToLower(s), ""
}

func normalIPv6(s string) (name, wrong string) {
	addr, err := netip.ParseAddr(s)
	switch {
	case err != nil || !addr.Is6():
		return "", "an address in brackets must be IPv6"
	case addr.Zone() != "":
		return "", "an address with a zone means something else on every host"
	case addr.Is4In6():
		return "", "an IPv4 address inside IPv6 must be written as IPv4"
	}
	return "[" + addr.String() + "]", ""
}

func plainLabel(label string) bool {
	if label == "" || len(label) > maxHostLabel || label[0] == '-' || label[len(label)-1] == '-' {
		return false
	}
	for i := range len(label) {
		c := label[i]
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-':
		default:
			return false
		}
	}
	return true
}

func normalPorts(s string) (ports []uint16, wrong string) {
	if s == everything {
		return nil, ""
	}
	for text := range strings.SplitSeq(s, ",") {
		n, err := strconv.ParseUint(text, 10, 16)
		if err != nil || n == 0 || strconv.FormatUint(n, 10) != text {
			return nil, "the port " + quoted(text) + " is not a number from 1 to 65535"
		}
		ports = append(ports, uint16(n))
	}
	if len(ports) > maxPorts {
		return nil, "it lists more than 32 ports"
	}
	slices.Sort(ports)
	return slices.Compact(ports), ""
}

// parseHostPorts reads a body that normalHostPorts wrote.
func parseHostPorts(body string) hostPorts {
	i := strings.LastIndexByte(body, ':')
	if i < 0 {
		return hostPorts{name: everything}
	}
	ports, _ := normalPorts(body[i+1:])
	return hostPorts{name: body[:i], ports: ports}
}

func (h hostPorts) text() string {
	if h.ports == nil {
		if h.name == everything {
			return everything
		}
		return h.name + ":" + everything
	}
	texts := make([]string, len(h.ports))
	for i, p := range h.ports {
		texts[i] = strconv.FormatUint(uint64(p), 10)
	}
	return h.name + ":" + strings.Join(texts, ",")
}

func (h hostPorts) contains(other hostPorts) bool {
	if h.name != everything && h.name != other.name {
		return false
	}
	if h.ports == nil {
		return true
	}
	if other.ports == nil {
		return false
	}
	for _, p := range other.ports {
		if !slices.Contains(h.ports, p) {
			return false
		}
	}
	return true
}

func (h hostPorts) intersect(other hostPorts) (both hostPorts, ok bool) {
	switch {
	case h.name == everything:
		both.name = other.name
	case other.name == everything || other.name == h.name:
		both.name = h.name
	default:
		return hostPorts{}, false
	}
	switch {
	case h.ports == nil:
		both.ports = other.ports
	case other.ports == nil:
		both.ports = h.ports
	default:
		for _, p := range h.ports {
			if slices.Contains(other.ports, p) {
				both.ports = append(both.ports, p)
			}
		}
		if both.ports == nil {
			return hostPorts{}, false
		}
	}
	return both, true
}
