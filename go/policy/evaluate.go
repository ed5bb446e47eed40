package policy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"
	"github.com/writ-runtime/writ/go/capability"
	"github.com/writ-runtime/writ/go/reason"
)

// evaluate asks the layer. It never fails: what goes wrong is a failed answer, which allows nothing.
func (l *layer) evaluate(ctx context.Context, input ast.Value, requests []capability.Request, o Options) capability.Answer {
	ctx, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	results, err := l.query.Eval(ctx, rego.EvalParsedInput(input))
	if err == nil {
		// Cancellation reaches the evaluator late; what it says after the deadline does not count.
		err = ctx.Err()
	}
	if err != nil {
		return evaluationFailure(l.name, err)
	}
	if len(results) != 1 || len(results[0].Expressions) != 1 {
		return capability.Failure(l.name, reason.PolicyMalformedAnswer, "its decision is undefined for this input", "")
	}
	b, err := encode(results[0].Expressions[0].Value, o.MaxAnswer)
	if err != nil {
		return capability.Failure(l.name, reason.PolicyMalformedAnswer, err.Error(), "")
	}
	return l.read(b, requests, o.Registry)
}

// encode writes a decision as JSON. It takes no more than most bytes.
func encode(decision any, most int) ([]byte, error) {
	w := &bounded{most: most}
	e := json.NewEncoder(w)
	// The default would write < and > as escapes, which count six times against the bound.
	e.SetEscapeHTML(false)
	if err := e.Encode(decision); err != nil {
		if w.full {
			return nil, fmt.Errorf("its decision is larger than %d bytes", most)
		}
		return nil, errors.New("its decision cannot be written as JSON")
	}
	return w.Bytes(), nil
}

// bounded is a buffer that refuses to grow beyond most bytes.
type bounded struct {
	bytes.Buffer
	most int
	full bool
}

func (b *bounded) Write(p []byte) (int, error) {
	if b.Len()+len(p) > b.most {
		b.full = true
		return 0, errors.New("full")
	}
	return b.Buffer.Write(p)
}

func isDeadline(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}

// defaultTimeout is many times what the shipped policies take.
const defaultTimeout = 2 * time.Second
