package policy

import (
	"errors"
	"fmt"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"
	"github.com/writ-runtime/writ/go/capability"
	"github.com/writ-runtime/writ/go/reason"
)

// compileError turns what parser and compiler say into a Refusal at the first place they name.
func compileError(err error) error {
	var list ast.Errors
	if !errors.As(err, &list) || len(list) == 0 {
		return reason.New(reason.PolicyLoad, "the policies cannot be compiled: "+err.Error(), "", "mend the policy").Because(err)
	}
	first := list[0]
	where := ""
	if first.Location != nil {
		where = fmt.Sprintf("%s:%d:%d", first.Location.File, first.Location.Row, first.Location.Col)
	}
	code, remedy := reason.PolicyLoad, "mend the policy, and run `go test ./policies`"
	switch first.Code {
	case lintBuiltin:
		code, remedy = reason.PolicyForbiddenBuiltin, "bring what it would find out into the input as a recorded fact"
	case lintNumber:
		remedy = "write a whole number, in a smaller unit if need be"
	}
	return reason.New(code, first.Message, where, remedy).Because(err)
}

// evaluationFailure is the answer of a layer whose evaluation ended with an error. Its text is the same whenever
// the same policies meet the same input, unless a deadline came in between.
func evaluationFailure(l capability.Layer, err error) capability.Answer {
	var evaluation *topdown.Error
	switch {
	case errors.As(err, &evaluation) && evaluation.Code != topdown.CancelErr:
		where := ""
		if evaluation.Location != nil {
			where = fmt.Sprintf("%s:%d", evaluation.Location.File, evaluation.Location.Row)
		}
		return capability.Failure(l, reason.PolicyLayerFailed, "its evaluation failed with "+evaluation.Code+": "+evaluation.Message, where)
	case topdown.IsCancel(err), isDeadline(err):
		return capability.Failure(l, reason.PolicyTimeout, "it did not answer in time", "")
	default:
		return capability.Failure(l, reason.PolicyLayerFailed, "its evaluation failed", "")
	}
}
