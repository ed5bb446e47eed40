package wire

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	executorv1 "github.com/writ-runtime/writ/go/api/executor/v1"
	"github.com/writ-runtime/writ/go/reason"
)

// FromRefusal writes a refusal into its message. The cause stays on this side.
func FromRefusal(r *reason.Refusal) *executorv1.Refusal {
	return &executorv1.Refusal{Code: string(r.Code), What: bounded(r.What), Where: bounded(r.Where), Remedy: bounded(r.Remedy)}
}

// ToRefusal reads a refusal. A code that is not registered, or no words, breaks the protocol; ok is false then, and
// the refusal says so.
func ToRefusal(m *executorv1.Refusal) (r *reason.Refusal, ok bool) {
	code := reason.Code(m.GetCode())
	if !code.Registered() || strings.TrimSpace(m.GetWhat()) == "" {
		return reason.New(reason.AdapterProtocol, fmt.Sprintf("a refusal came with the unregistered code %s or without words", Clip(m.GetCode())),
			Clip(m.GetWhere()), "refuse with a registered reason code and one sentence"), false
	}
	return reason.New(code, bounded(m.GetWhat()), bounded(m.GetWhere()), bounded(m.GetRemedy())), true
}

// StatusOf makes the gRPC status by which a call is refused: its details hold the refusal.
func StatusOf(r *reason.Refusal) error {
	s, err := status.New(codes.FailedPrecondition, r.Error()).WithDetails(FromRefusal(r))
	if err != nil {
		return status.Error(codes.Internal, r.Error())
	}
	return s.Err()
}

// RefusalOf returns the refusal that a status carries; ok is false for an error without one.
func RefusalOf(err error) (r *reason.Refusal, ok bool) {
	s, isStatus := status.FromError(err)
	if !isStatus || s.Code() != codes.FailedPrecondition {
		return nil, false
	}
	for _, d := range s.Details() {
		if m, isRefusal := d.(*executorv1.Refusal); isRefusal {
			return ToRefusal(m)
		}
	}
	return nil, false
}

// bounded cuts a text at MaxText and replaces what a terminal could take for a command.
func bounded(s string) string {
	if len(s) > MaxText {
		s = s[:MaxText]
		for len(s) > 0 && !utf8.ValidString(s) {
			s = s[:len(s)-1]
		}
	}
	return Printable(s)
}

// Printable replaces control characters and broken UTF-8 in a text that somebody else wrote.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || (r >= 0x80 && r < 0xa0) || r == utf8.RuneError {
			return '�'
		}
		return r
	}, s)
}
