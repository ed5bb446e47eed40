package requirements

import (
	"fmt"
	"regexp"
	"strings"
)

// stepPrefix begins a proof that is a step of .ci/run.
const stepPrefix = "ci: "

// Proof is one test that proves a requirement. It has one of three forms:
//
//	//go/kernel:kernel_test TestLossAtEveryPoint   a Go test, or TestX/a_subtest
//	//policies:rego_test                           a whole target, for tests in other languages
//	ci: main job                                   a step of .ci/run
type Proof struct {
	Target, Test string
	Step         string
}

//writ:immutable compiled patterns, never reassigned
var (
	targetShape = regexp.MustCompile(`^//([a-z0-9_./-]*):([A-Za-z0-9_.-]+)$`)
	testShape   = regexp.MustCompile(`^(Test|Fuzz|Example)[A-Za-z0-9_]*(/\S+)?$`)
)

// ParseProof reads a proof in one of its forms.
func ParseProof(text string) (Proof, error) {
	if step, ok := strings.CutPrefix(text, stepPrefix); ok && step != "" {
		return Proof{Step: step}, nil
	}
	target, test, named := strings.Cut(text, " ")
	if !targetShape.MatchString(target) || named && !testShape.MatchString(test) {
		return Proof{}, fmt.Errorf("%q is no proof: write \"//package:target TestName\", \"//package:target\" or \"ci: step\"", text)
	}
	return Proof{Target: target, Test: test}, nil
}

// Package returns the folder of the proof's target below the root of the tree, and the
// target's name. Preconditions: the proof has a target.
func (p Proof) Package() (folder, name string) {
	parts := targetShape.FindStringSubmatch(p.Target)
	return parts[1], parts[2]
}

// Function returns the Go function of the proof, without the subtest.
func (p Proof) Function() string {
	name, _, _ := strings.Cut(p.Test, "/")
	return name
}
