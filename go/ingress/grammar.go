package ingress

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/writ-runtime/writ/go/kernel"
	"github.com/writ-runtime/writ/go/reason"
)

// prefix begins every command.
const prefix = "/writ "

// MaxContent bounds a command, in bytes.
const MaxContent = 8 << 10

// The verbs of the grammar. A verb is known to it before a release can carry it out.
const (
	Status                 = "status"
	CancelWork             = "cancel-work"
	ResolveAmbiguousEffect = "resolve-ambiguous-effect"
	ReconcileClock         = "reconcile-clock"
	Withdraw               = "withdraw"
	ResumeWork             = "resume-work"
	SettleBudget           = "settle-budget"
	ModeRaise              = "mode-raise"
	Wake                   = "wake"
)

// form is what a verb takes: its target, empty for none, and its flags, all of them, in
// this order.
type form struct {
	verb, target string
	flags        []string
}

// forms is the whole grammar. No verb says who may have it: whoever the gate lets in is a
// person who is enumerated, and a scheduler has a door of its own that takes nothing but wake.
//
//writ:immutable the grammar
var forms = []form{
	{verb: Status},
	{verb: Wake},
	{verb: CancelWork, target: "ID", flags: []string{"expected-version", "reason"}},
	{verb: ResumeWork, target: "ID", flags: []string{"expected-version", "reason"}},
	{verb: ModeRaise, target: "ID", flags: []string{"to", "evidence", "expected-version", "reason"}},
	{verb: ResolveAmbiguousEffect, target: "ATTEMPT",
		flags: []string{"disposition", "operation-key", "evidence", "expected-version", "reason"}},
	{verb: Withdraw, target: "ATTEMPT", flags: []string{"purpose", "expected-version", "reason"}},
	{verb: ReconcileClock, target: "CLOCK", flags: []string{"from", "expected-version", "reason"}},
	{verb: SettleBudget, target: "ATTEMPT", flags: []string{"calls", "tokens", "wall-ms", "money", "expected-version", "reason"}},
}

// line renders the form as a person would type it.
func (f form) line() string {
	var b strings.Builder
	b.WriteString(prefix + f.verb)
	if f.target != "" {
		b.WriteString(" " + f.target)
	}
	for _, name := range f.flags {
		b.WriteString(" --" + name + " …")
	}
	return b.String()
}

// Grammar lists every form of command, a line each.
func Grammar() string {
	var b strings.Builder
	for _, f := range forms {
		b.WriteString("  " + f.line() + "\n")
	}
	return b.String()
}

// Intent is a command that the grammar accepts.
type Intent struct {
	Verb, Target string
	Flags        []kernel.Flag
}

// Flag returns the value of a flag.
func (i Intent) Flag(name string) string {
	for _, f := range i.Flags {
		if f.Name == name {
			return f.Value
		}
	}
	return ""
}

// Render writes the command that parses to the intent.
func (i Intent) Render() string {
	var b strings.Builder
	b.WriteString(prefix + i.Verb)
	if i.Target != "" {
		b.WriteString(" " + i.Target)
	}
	for _, f := range i.Flags {
		b.WriteString(" --" + f.Name + " " + quote(f.Value))
	}
	return b.String()
}

// quote writes a value bare where it can stand so, else as a JSON string.
func quote(value string) string {
	if value != "" && !strings.ContainsFunc(value, func(r rune) bool { return r <= ' ' || r > '~' || r == '"' }) && !strings.HasPrefix(value, "--") {
		return value
	}
	raw, err := json.Marshal(value)
	if err != nil {
		return `""` // A string always has a form in JSON.
	}
	return string(raw)
}

// Parse reads one command: `/writ VERB TARGET --flag value …`, its words one space apart,
// every flag of the verb, in the order of the grammar. A value with anything but printable
// ASCII, or with a space, is a JSON string. Nothing is abbreviated, expanded or repaired.
// The error is a *reason.Refusal with ingress.malformed.
func Parse(text string) (Intent, error) {
	words, err := split(text)
	if err != nil {
		return Intent{}, err
	}
	i := slices.IndexFunc(forms, func(f form) bool { return f.verb == words[0].text && !words[0].quoted })
	if i < 0 {
		var verbs []string
		for _, f := range forms {
			verbs = append(verbs, f.verb)
		}
		return Intent{}, malformed(fmt.Sprintf("%.40q is no verb", words[0].text), "write one of: "+strings.Join(verbs, ", "))
	}
	f := forms[i]
	remedy := "write " + f.line()
	in, rest := Intent{Verb: f.verb, Flags: []kernel.Flag{}}, words[1:]
	if f.target != "" {
		if len(rest) == 0 || rest[0].quoted || strings.HasPrefix(rest[0].text, "--") {
			return Intent{}, malformed(f.verb+" names no "+f.target, remedy)
		}
		in.Target, rest = rest[0].text, rest[1:]
	}
	for _, name := range f.flags {
		if len(rest) < 2 || rest[0].quoted || rest[0].text != "--"+name {
			return Intent{}, malformed("--"+name+" is missing, or not in its place", remedy)
		}
		if !rest[1].quoted && strings.HasPrefix(rest[1].text, "--") || rest[1].text == "" {
			return Intent{}, malformed("--"+name+" has no value", remedy)
		}
		in.Flags, rest = append(in.Flags, kernel.Flag{Name: name, Value: rest[1].text}), rest[2:]
	}
	if len(rest) > 0 {
		return Intent{}, malformed(fmt.Sprintf("%.40q is more than %s takes", rest[0].text, f.verb), remedy)
	}
	return in, nil
}

type word struct {
	text   string
	quoted bool
}

// split cuts a command into its words.
func split(text string) ([]word, error) {
	if len(text) > MaxContent {
		return nil, reason.New(reason.IngressTooLarge, fmt.Sprintf("a command has at most %d bytes, this one has %d", MaxContent, len(text)), "", "say it in fewer")
	}
	if !utf8.ValidString(text) {
		return nil, malformed("the command is not UTF-8", "type it again")
	}
	rest, ok := strings.CutPrefix(text, prefix)
	if !ok {
		return nil, malformed("the command does not begin with /writ and one space", "write /writ VERB …")
	}
	var words []word
	for {
		w, after, err := next(rest)
		if err != nil {
			return nil, err
		}
		words = append(words, w)
		if after == "" {
			return words, nil
		}
		if after[0] != ' ' {
			return nil, malformed("a quoted value is followed by more", "put one space between words")
		}
		rest = after[1:]
	}
}

// next takes the first word, and returns what follows it.
func next(text string) (word, string, error) {
	if strings.HasPrefix(text, `"`) {
		d := json.NewDecoder(strings.NewReader(text))
		var value string
		if err := d.Decode(&value); err != nil {
			return word{}, "", malformed("a quoted value is no JSON string", `write it as "…", with \" for a quote`)
		}
		if strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r == 0x7f || r == utf8.RuneError }) {
			return word{}, "", malformed("a value holds control characters", "leave them out")
		}
		return word{value, true}, text[d.InputOffset():], nil
	}
	end := strings.IndexByte(text, ' ')
	if end < 0 {
		end = len(text)
	}
	bare := text[:end]
	if bare == "" || strings.ContainsFunc(bare, func(r rune) bool { return r <= ' ' || r > '~' || r == '"' }) {
		return word{}, "", malformed("there is an empty word, or one with more than printable ASCII",
			`put one space between words, and write such a value as a JSON string, "…"`)
	}
	return word{text: bare}, text[end:], nil
}

func malformed(what, remedy string) error {
	return reason.New(reason.IngressMalformed, what, "", remedy)
}
