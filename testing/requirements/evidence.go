package requirements

import (
	"bufio"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Outcome is what became of a target or of one test.
type Outcome string

// The outcomes. Anything but Passed proves nothing.
const (
	Passed  Outcome = "passed"
	Failed  Outcome = "failed"
	Skipped Outcome = "skipped"
	NotRun  Outcome = "not run"
)

// Evidence is what ran, and how it ended. The zero value holds nothing.
type Evidence struct {
	targets map[string]Outcome
	// tests are keyed by target, a space and the test's name.
	tests map[string]Outcome
	steps map[string]bool
}

// event is the part of a line of Bazel's build event file that says how a test ended.
type event struct {
	ID struct {
		TestResult struct {
			Label string `json:"label"`
		} `json:"testResult"`
	} `json:"id"`
	TestResult struct {
		Status           string `json:"status"`
		TestActionOutput []struct {
			Name string `json:"name"`
			URI  string `json:"uri"`
		} `json:"testActionOutput"`
	} `json:"testResult"`
}

// ReadEvents adds what Bazel's build event file (--build_event_json_file) says. That file
// holds what this one run did; the logs below bazel-testlogs can be of an older run. open
// returns the contents of a log by its URI.
func (e *Evidence) ReadEvents(r io.Reader, open func(uri string) ([]byte, error)) error {
	if e.targets == nil {
		e.targets, e.tests = map[string]Outcome{}, map[string]Outcome{}
	}
	for d := json.NewDecoder(r); ; {
		var ev event
		if err := d.Decode(&ev); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("build events: %w", err)
		}
		label := ev.ID.TestResult.Label
		if label == "" {
			continue
		}
		// A label of the main repository is @//x or @@//x in some versions of Bazel.
		label = strings.TrimLeft(label, "@")
		ended := Failed
		if ev.TestResult.Status == "PASSED" {
			ended = Passed
		}
		worst(e.targets, label, ended)
		for _, out := range ev.TestResult.TestActionOutput {
			if out.Name != "test.xml" {
				continue
			}
			raw, err := open(out.URI)
			if err != nil {
				return fmt.Errorf("log of %s: %w", label, err)
			}
			if err := e.readLog(label, raw); err != nil {
				return fmt.Errorf("log of %s: %w", label, err)
			}
		}
	}
}

// readLog adds the test cases of one test.xml.
func (e *Evidence) readLog(label string, raw []byte) error {
	var log struct {
		Suites []struct {
			Cases []struct {
				Name    string    `xml:"name,attr"`
				Failure *struct{} `xml:"failure"`
				Error   *struct{} `xml:"error"`
				Skipped *struct{} `xml:"skipped"`
			} `xml:"testcase"`
		} `xml:"testsuite"`
	}
	if err := xml.Unmarshal(raw, &log); err != nil {
		return err
	}
	for _, suite := range log.Suites {
		for _, c := range suite.Cases {
			ended := Passed
			switch {
			case c.Failure != nil, c.Error != nil:
				ended = Failed
			case c.Skipped != nil:
				ended = Skipped
			}
			worst(e.tests, label+" "+c.Name, ended)
		}
	}
	return nil
}

// worst keeps the worse of two outcomes: a target may run in shards, or more than once.
func worst(m map[string]Outcome, key string, o Outcome) {
	if known, ok := m[key]; !ok || known == Passed {
		m[key] = o
	}
}

// ReadSteps adds the steps that passed: one line `ok NAME` each, as .ci/run writes them.
func (e *Evidence) ReadSteps(r io.Reader) error {
	if e.steps == nil {
		e.steps = map[string]bool{}
	}
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		name, ok := strings.CutPrefix(lines.Text(), "ok ")
		if !ok || name == "" {
			return fmt.Errorf("steps: %q is not of the form \"ok NAME\"", lines.Text())
		}
		e.steps[name] = true
	}
	return lines.Err()
}

// Of returns how a proof ended.
func (e *Evidence) Of(p Proof) Outcome {
	if p.Step != "" {
		if e.steps[p.Step] {
			return Passed
		}
		return NotRun
	}
	found, key := e.targets, p.Target
	if p.Test != "" {
		found, key = e.tests, p.Target+" "+p.Test
	}
	if o, ok := found[key]; ok {
		return o
	}
	return NotRun
}
