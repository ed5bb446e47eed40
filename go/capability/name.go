package capability

// maxName bounds the name of a tool or credential, in bytes.
const maxName = 64

// normalName returns the normal form of the name of a tool or credential, or what is wrong with it. Names are
// compared exactly, so letters of either case that look alike to a person are kept out: only lower case is taken.
func normalName(body string) (normal, wrong string) {
	if body == everything {
		return body, ""
	}
	if !plainName(body) {
		return "", "a name is 1 to 64 characters of a-z, 0-9, '.', '_' and '-', and begins with a letter or digit"
	}
	return body, ""
}

func plainName(s string) bool {
	if s == "" || len(s) > maxName || s[0] == '.' || s[0] == '_' || s[0] == '-' {
		return false
	}
	for i := range len(s) {
		c := s[i]
		switch {
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9', c == '.', c == '_', c == '-':
		default:
			return false
		}
	}
	return true
}
