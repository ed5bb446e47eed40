// Command json-transform applies a declared transformation to JSON arrays and writes result.json and changes.md to
// its workspace.
//
// It is a reference tool of Writ: built for wasip1/wasm, it sees its inputs under /inputs and its workspace as the
// current directory, and nothing else. Both flags name a file below /inputs, or a folder there: of data, all its
// .json files one after the other, by name; of the transformation, its only .json file.
//
//	json-transform --data data --transform transform
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/writ-runtime/writ/plugins/tools/json-transform/transform"
)

// result is what result.json holds. Its schema is examples/json-transform/result.schema.json.
type result struct {
	Kind    string             `json:"kind"`
	Items   []transform.Item   `json:"items"`
	Changes []transform.Change `json:"changes"`
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "json-transform: %v\n", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	flags := flag.NewFlagSet("json-transform", flag.ContinueOnError)
	data := flags.String("data", "data", "file or folder of JSON arrays")
	declared := flags.String("transform", "transform", "file that declares the transformation, or its folder")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	declaration, err := readDeclaration(*declared)
	if err != nil {
		return err
	}
	items, err := readItems(*data)
	if err != nil {
		return err
	}
	items, changes, err := declaration.Apply(items)
	if err != nil {
		return err
	}
	return write(result{Kind: "json-transform.result.v1", Items: items, Changes: changes})
}

func readDeclaration(name string) (transform.Declaration, error) {
	paths, err := files(name)
	if err != nil {
		return transform.Declaration{}, fmt.Errorf("transformation: %w", err)
	}
	if len(paths) != 1 {
		return transform.Declaration{}, fmt.Errorf("transformation: %s holds %d .json files, not one", name, len(paths))
	}
	data, err := os.ReadFile(paths[0])
	if err != nil {
		return transform.Declaration{}, fmt.Errorf("transformation: %w", err)
	}
	d, err := transform.ReadDeclaration(data)
	if err != nil {
		return transform.Declaration{}, fmt.Errorf("transformation %s: %w", paths[0], err)
	}
	return d, nil
}

func readItems(name string) ([]transform.Item, error) {
	paths, err := files(name)
	if err != nil {
		return nil, fmt.Errorf("data: %w", err)
	}
	items := []transform.Item{}
	for _, p := range paths {
		data, err := os.ReadFile(p)
		if err != nil {
			return nil, fmt.Errorf("data: %w", err)
		}
		more, err := transform.ReadItems(data)
		if err != nil {
			return nil, fmt.Errorf("data %s: %w", p, err)
		}
		items = append(items, more...)
	}
	return items, nil
}

// files returns the file that name means below /inputs, or the .json files of the folder that it means, by name.
func files(name string) ([]string, error) {
	if !filepath.IsLocal(name) {
		return nil, fmt.Errorf("%q is no name of an input", name)
	}
	root := filepath.Join("/inputs", name)
	info, err := os.Stat(root)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return []string{root}, nil
	}
	entries, err := os.ReadDir(root)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, e := range entries {
		if filepath.Ext(e.Name()) == ".json" && !e.IsDir() {
			out = append(out, filepath.Join(root, e.Name()))
		}
	}
	if len(out) == 0 {
		return nil, errors.New(name + " holds no .json file")
	}
	return out, nil
}

func write(r result) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(r); err != nil {
		return fmt.Errorf("encode result: %w", err)
	}
	if err := os.WriteFile("result.json", b.Bytes(), 0o600); err != nil {
		return fmt.Errorf("write result: %w", err)
	}
	b.Reset()
	fmt.Fprintf(&b, "# What changed\n\n| step | operation | items before | items after | items changed |\n|--:|:--|--:|--:|--:|\n")
	for i, c := range r.Changes {
		fmt.Fprintf(&b, "| %d | %s | %d | %d | %d |\n", i+1, c.Op, c.Before, c.After, c.Changed)
	}
	if err := os.WriteFile("changes.md", b.Bytes(), 0o600); err != nil {
		return fmt.Errorf("write changes: %w", err)
	}
	fmt.Printf("%d items after %d operations\n", len(r.Items), len(r.Changes))
	return nil
}
