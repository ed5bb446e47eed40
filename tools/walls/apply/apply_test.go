package apply_test

import (
	"testing"

	"github.com/writ-runtime/writ/tools/walls/apply"
)

const want = `load("@io_bazel_rules_go//go:def.bzl", "go_library")
load("//tools/bzl:walls.bzl", "walls")

package(default_visibility = walls())

# kept
go_library(
    name = "journal",
    srcs = ["journal.go"],
)

go_library(
    name = "own",
    visibility = ["//visibility:private"],
)
`

func TestBuild(t *testing.T) {
	for name, in := range map[string]string{
		"fresh from gazelle": `load("@io_bazel_rules_go//go:def.bzl", "go_library")

# kept
go_library(
    name = "journal",
    srcs = ["journal.go"],
    visibility = ["//visibility:public"],
)

go_library(
    name = "own",
    visibility = ["//visibility:private"],
)
`,
		"another default": `load("@io_bazel_rules_go//go:def.bzl", "go_library")

package(default_visibility = ["//visibility:public"])

# kept
go_library(
    name = "journal",
    srcs = ["journal.go"],
)

go_library(
    name = "own",
    visibility = ["//visibility:private"],
)
`,
		"right": want,
	} {
		got, err := apply.Build("go/journal/BUILD.bazel", []byte(in))
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != want {
			t.Errorf("%s:\n%s", name, got)
		}
	}
	if _, err := apply.Build("go/x/BUILD.bazel", []byte("load(")); err == nil {
		t.Error("a file that does not parse is accepted")
	}
}
