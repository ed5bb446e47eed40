// Package transform applies a declared list of operations to a list of JSON objects. Integers stay exact, other
// numbers are refused, and every order is defined.
package transform

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Item is one JSON object. Values are nil, bool, json.Number, string, []any or map[string]any.
type Item = map[string]any

// ReadItems reads a JSON array of objects. It refuses keys that stand twice, numbers that are no integers, and
// bytes after the array.
func ReadItems(data []byte) ([]Item, error) {
	v, err := readValue(data)
	if err != nil {
		return nil, err
	}
	list, ok := v.([]any)
	if !ok {
		return nil, errors.New("not an array of objects")
	}
	items := make([]Item, 0, len(list))
	for i, e := range list {
		item, ok := e.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("element %d is no object", i)
		}
		items = append(items, item)
	}
	return items, nil
}

func readValue(data []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	v, err := value(d, 0)
	if err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("bytes follow the value")
	}
	return v, nil
}

const maxDepth = 64

func value(d *json.Decoder, depth int) (any, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("nested deeper than %d", maxDepth)
	}
	t, err := d.Token()
	if err != nil {
		return nil, fmt.Errorf("byte %d: %w", d.InputOffset(), err)
	}
	switch t := t.(type) {
	case json.Delim:
		if t == '[' {
			return array(d, depth)
		}
		return object(d, depth)
	case json.Number:
		if strings.ContainsAny(t.String(), ".eE") || t == "-0" {
			return nil, fmt.Errorf("byte %d: %s is no plain integer", d.InputOffset(), t)
		}
		return t, nil
	default:
		return t, nil
	}
}

func array(d *json.Decoder, depth int) (any, error) {
	list := []any{}
	for d.More() {
		v, err := value(d, depth+1)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	_, err := d.Token()
	return list, err
}

func object(d *json.Decoder, depth int) (any, error) {
	m := map[string]any{}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return nil, fmt.Errorf("byte %d: %w", d.InputOffset(), err)
		}
		key, _ := t.(string) // the decoder lets nothing else through here
		if _, twice := m[key]; twice {
			return nil, fmt.Errorf("byte %d: key %q stands twice", d.InputOffset(), key)
		}
		if m[key], err = value(d, depth+1); err != nil {
			return nil, err
		}
	}
	_, err := d.Token()
	return m, err
}
