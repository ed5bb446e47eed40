"""Repository rules that take Go modules through the ordinary `go mod download`.

Used from WORKSPACE only, that is by Bazel releases without bzlmod. With bzlmod
(MODULE.bazel) rules_go, gazelle and go_deps come from the Bazel Central Registry.
"""

load("//tools/bzl:versions.bzl", "GO_MINIMUM")

# A change of one of these makes Bazel fetch again.
_ENVIRON = ["GOCACHE", "GOMODCACHE", "GONOPROXY", "GOPATH", "GOPRIVATE", "GOPROXY", "GOROOT", "HOME", "PATH"]

# Every download is checked against a hash pinned here, in go.sum, or in the
# go.sum of a module so checked; the checksum database is therefore not asked.
_GO_ENV = {
    "CGO_ENABLED": "0",
    "GO111MODULE": "on",
    "GOENV": "off",
    "GOFLAGS": "-mod=readonly",
    "GOTOOLCHAIN": "local",
    "GOSUMDB": "off",
    "GOWORK": "off",
}

def _go(rctx):
    if rctx.os.environ.get("GOROOT"):
        return rctx.path(rctx.os.environ["GOROOT"] + "/bin/go")
    go = rctx.which("go")
    if not go and rctx.path("/usr/local/go/bin/go").exists:
        go = rctx.path("/usr/local/go/bin/go")
    if not go:
        fail("no go command: put one on PATH or set GOROOT")
    return go

def _run(rctx, args, what, **kwargs):
    res = rctx.execute(args, timeout = 3600, **kwargs)
    if res.return_code != 0:
        fail("%s failed (exit %d):\n%s%s" % (what, res.return_code, res.stdout, res.stderr))
    return res.stdout

def _download(rctx):
    """Downloads the module, checks its h1: hash and copies its files to the repository's root."""
    attr = rctx.attr
    what = "%s@%s" % (attr.replace or attr.importpath, attr.version)
    info = json.decode(_run(
        rctx,
        [_go(rctx), "mod", "download", "-json", what],
        "go mod download " + what,
        environment = _GO_ENV,
    ))
    if info["Sum"] != attr.sum:
        fail("%s: expected %s, got %s" % (what, attr.sum, info["Sum"]))

    # Module zips lose the executable bit.
    _run(
        rctx,
        ["sh", "-c", 'cp -R "$1"/. . && chmod -R u+w . && find . -name "*.sh" -exec chmod +x {} +', "sh", info["Dir"]],
        "copying " + what,
    )

def _substitute(rctx):
    for paths, pairs in rctx.attr.substitutions.items():
        if len(pairs) % 2:
            fail("substitutions for %s: odd number of strings" % paths)
        for path in paths.split(" "):
            text = rctx.read(path)
            for i in range(0, len(pairs), 2):
                if pairs[i] not in text:
                    fail("%s: text to replace not found: %s" % (path, pairs[i]))
                text = text.replace(pairs[i], pairs[i + 1])
            rctx.delete(path)
            rctx.file(path, text, executable = False)

_MODULE_ATTRS = {
    "importpath": attr.string(mandatory = True, doc = "the module's path"),
    "replace": attr.string(doc = "the path to download instead (go.mod's replace)"),
    "version": attr.string(mandatory = True),
    "sum": attr.string(mandatory = True, doc = "the h1: hash, as in go.sum"),
    "substitutions": attr.string_list_dict(
        doc = "file(s, separated by spaces) -> [old text, new text, ...]; each old text must occur",
    ),
}

# --- a module's own files, for Bazel rules that are published as Go modules ---

def _go_module_repository_impl(rctx):
    _download(rctx)
    _substitute(rctx)
    rctx.file("WORKSPACE", "workspace(name = %r)\n" % rctx.name, executable = False)

go_module_repository = repository_rule(
    implementation = _go_module_repository_impl,
    attrs = _MODULE_ATTRS,
    environ = _ENVIRON,
)

# --- gazelle, built with the go command ---

# gazelle's own rules need its own Go dependencies as Bazel repositories. These two macros
# have the same names and arguments, so BUILD files need not know which Bazel reads them.
_GAZELLE_DEF_BZL = '''"""`bazel run //:gazelle`, and a test that its BUILD files are fresh."""

_FILES = ["@bazel_gazelle//cmd/gazelle", "@go_deps//:config/WORKSPACE"]
_ARGS = ["$(rootpath %s)" % f for f in _FILES]

def gazelle(name, external = "external", **kwargs):
    native.sh_binary(
        name = name,
        srcs = ["@bazel_gazelle//:gazelle.sh"],
        args = [external] + _ARGS,
        data = _FILES,
        **kwargs
    )

def gazelle_test(name, workspace, external = "external", size = None, tags = [], **kwargs):
    native.sh_test(
        name = name,
        size = size,
        srcs = ["@bazel_gazelle//:gazelle_test.sh"],
        args = [external] + _ARGS + ["$(rootpath %s)" % workspace],
        data = _FILES + [workspace],
        # It reads the source tree itself, which is no declared input: "external" makes
        # Bazel run it each time.
        tags = tags + ["external", "no-cache", "no-sandbox"],
        **kwargs
    )
'''

_GAZELLE_SH = """#!/bin/sh
# gazelle.sh EXTERNAL GAZELLE CONFIG [ARG...]: writes the BUILD files of the workspace.
external=$1 gazelle=$PWD/$2 config=$PWD/$3
shift 3
exec "$gazelle" update -external="$external" -repo_root="$BUILD_WORKSPACE_DIRECTORY" -repo_config="$config" "$@" "$BUILD_WORKSPACE_DIRECTORY"
"""

_GAZELLE_TEST_SH = """#!/bin/sh
# gazelle_test.sh EXTERNAL GAZELLE CONFIG FILE: fails when a BUILD file of the workspace is stale.
# FILE is any file of the workspace's root; its symlink leads there.
root=$(dirname "$(readlink -f "$4")")
if ! "$PWD/$2" update -mode=diff -external="$1" -repo_root="$root" -repo_config="$PWD/$3" "$root"; then
    echo "BUILD files are stale (the difference stands above): run ./bazelw run //:gazelle" >&2
    exit 1
fi
"""

def _gazelle_repository_impl(rctx):
    _download(rctx)
    _run(
        rctx,
        [_go(rctx), "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", "gazelle.bin", "github.com/bazel-contrib/bazel-gazelle/v2/cmd/gazelle"],
        "building gazelle",
        environment = _GO_ENV,
    )
    _run(rctx, ["sh", "-c", "find . -mindepth 1 -maxdepth 1 ! -name gazelle.bin -exec rm -rf {} + && mkdir -p cmd/gazelle && mv gazelle.bin cmd/gazelle/gazelle"], "cleaning up")
    rctx.file("WORKSPACE", "workspace(name = %r)\n" % rctx.name, executable = False)
    rctx.file("BUILD.bazel", 'exports_files(["gazelle.sh", "gazelle_test.sh"])\n', executable = False)
    rctx.file("cmd/gazelle/BUILD.bazel", 'exports_files(["gazelle"])\n', executable = False)
    rctx.file("gazelle.sh", _GAZELLE_SH)
    rctx.file("gazelle_test.sh", _GAZELLE_TEST_SH)
    rctx.file("def.bzl", _GAZELLE_DEF_BZL, executable = False)

gazelle_repository = repository_rule(
    implementation = _gazelle_repository_impl,
    attrs = _MODULE_ATTRS,
    environ = _ENVIRON,
)

# --- a module as Go packages: gazelle writes the BUILD files ---

def _go_repository_impl(rctx):
    _download(rctx)
    _run(
        rctx,
        ["find", ".", "(", "-name", "BUILD", "-o", "-name", "BUILD.bazel", "-o", "-name", "WORKSPACE*", "-o", "-name", "MODULE.bazel", "-o", "-name", "REPO.bazel", ")", "-type", "f", "-delete"],
        "removing old BUILD files",
    )
    _substitute(rctx)
    rctx.file("WORKSPACE", "workspace(name = %r)\n" % rctx.name, executable = False)
    if rctx.attr.build_directives:
        rctx.file("BUILD.bazel", "".join(["# %s\n" % d for d in rctx.attr.build_directives]), executable = False)
    _run(
        rctx,
        [
            rctx.path(rctx.attr._gazelle),
            "-go_repository_mode",
            "-go_repository_module_mode",
            "-go_prefix=" + rctx.attr.importpath,
            "-mode=fix",
            "-repo_root=" + str(rctx.path("")),
            "-repo_config=" + str(rctx.path(rctx.attr._repo_config)),
            "-build_file_name=BUILD.bazel",
            "-external=static",
            "-go_naming_convention=import_alias",
            "-proto=disable_global",
            str(rctx.path("")),
        ],
        "gazelle in " + rctx.name,
        environment = _GO_ENV,
    )

go_repository = repository_rule(
    implementation = _go_repository_impl,
    attrs = dict(
        _MODULE_ATTRS,
        build_directives = attr.string_list(doc = "gazelle directives for the root BUILD file"),
        _gazelle = attr.label(default = "@bazel_gazelle//cmd/gazelle", allow_single_file = True),
        _repo_config = attr.label(default = "@go_deps//:config/WORKSPACE", allow_single_file = True),
    ),
    environ = _ENVIRON,
)

# --- go.mod and go.sum as go_repository rules ---

def _repo_name(path):
    """The name that gazelle gives to a module's repository."""
    parts = path.lower().split("/")
    parts = reversed(parts[0].split(".")) + parts[1:]
    return "".join([c if c.isalnum() else "_" for c in "_".join(parts).elems()])

def _check_go_version(rctx):
    """Refuses a Go below the minimum here, where the reason can still be said in words."""
    found = _run(rctx, [_go(rctx), "env", "GOVERSION"], "go env GOVERSION", environment = _GO_ENV).strip()
    want = [int(n) for n in GO_MINIMUM.split(".")]

    # go1.26, go1.26.8, go1.27rc1, "devel go1.27-..."; what cannot be read is let through.
    have = []
    for n in found.split("go")[-1].split(".")[:2]:
        digits = ""
        for c in n.elems():
            if not c.isdigit():
                break
            digits += c
        if digits:
            have.append(int(digits))
    if len(have) == 2 and have < want:
        fail("Go %s or newer is needed, found %s at %s: put a newer go on PATH, or set GOROOT" % (GO_MINIMUM, found, _go(rctx)))

def _go_deps_impl(rctx):
    _check_go_version(rctx)
    go_mod = json.decode(_run(
        rctx,
        [_go(rctx), "mod", "edit", "-json", str(rctx.path(rctx.attr.go_mod))],
        "reading go.mod",
        environment = _GO_ENV,
    ))
    sums = {}
    for line in rctx.read(rctx.attr.go_sum).splitlines():
        fields = line.split(" ")
        if len(fields) == 3 and not fields[1].endswith("/go.mod"):
            sums[(fields[0], fields[1])] = fields[2]
    replaced = {}
    for r in go_mod["Replace"] or []:
        if not r["New"].get("Version"):
            fail("go.mod: replace by a folder is not supported: " + r["Old"]["Path"])
        replaced[r["Old"]["Path"]] = r["New"]
    calls, config = [], []
    for m in go_mod["Require"]:
        path, version = m["Path"], m["Version"]
        new = replaced.get(path, {"Path": path, "Version": version})
        sum = sums.get((new["Path"], new["Version"]))
        if not sum:
            # Only its go.mod is needed: no package of it is built.
            continue
        name = _repo_name(path)
        attrs = {"name": name, "importpath": path, "version": new["Version"], "sum": sum}
        if new["Path"] != path:
            attrs["replace"] = new["Path"]
        calls.append("    go_repository(%s, **overrides.get(%r, {}))\n" % (
            ", ".join(["%s = %r" % item for item in attrs.items()]),
            path,
        ))
        config.append("go_repository(name = %r, importpath = %r)\n" % (name, path))
    rctx.file("BUILD.bazel", 'exports_files(["config/WORKSPACE"])\n', executable = False)
    rctx.file("config/WORKSPACE", "".join(config), executable = False)
    rctx.file(
        "repositories.bzl",
        'load("@%s//tools/bzl:go_module.bzl", "go_repository")\n\ndef go_repositories(overrides = {}):\n' % rctx.attr.workspace +
        "".join(calls or ["    pass\n"]),
        executable = False,
    )

go_deps = repository_rule(
    implementation = _go_deps_impl,
    attrs = {
        "go_mod": attr.label(mandatory = True, allow_single_file = True),
        "go_sum": attr.label(mandatory = True, allow_single_file = True),
        "workspace": attr.string(mandatory = True, doc = "the main repository's name"),
    },
    environ = _ENVIRON,
)
