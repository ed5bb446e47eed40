"""The release set: lock files, and the files they name, in one folder.

    dist(
        name = "dist",
        entries = [
            adapter("reference-local", binary = "//plugins/adapters/referencelocal", version = "0.1.0"),
            policy("constitution", bundle = "//policies/constitution:bundle", version = "0.1.0"),
        ],
    )

makes dist/adapters.lock.json, dist/adapters/reference-local and so on. `go run ./tools/dist`
reads the same call out of the BUILD file and makes the same folder without Bazel, so
an argument here is a literal.
"""

_GO_TOOLCHAIN = "@io_bazel_rules_go//go:toolchain"

# Where the files of a kind lie, under which ending, and what runs them ("" is the
# machine that the build is for). tools/lockfile knows which lock holds which kind.
_KINDS = {
    "adapter": struct(folder = "adapters", ending = "", platform = ""),
    "policy": struct(folder = "policies", ending = ".tar.gz", platform = "any"),
    "tool": struct(folder = "tools", ending = ".wasm", platform = "wasip1/wasm"),
    "worker": struct(folder = "workers", ending = "", platform = ""),
}

def _entry(kind, name, version, file, manifest):
    return struct(kind = kind, name = name, version = version, file = file, manifest = manifest)

def adapter(name, version, binary, manifest = None):
    """An executor adapter: a program that speaks the adapter protocol."""
    return _entry("adapter", name, version, binary, manifest)

def worker(name, version, binary, manifest = None):
    """A program of our own that the runtime starts confined."""
    return _entry("worker", name, version, binary, manifest)

def tool(name, version, module, manifest = None):
    """A WebAssembly tool (wasm_tool)."""
    return _entry("tool", name, version, module, manifest)

def policy(name, version, bundle, manifest = None):
    """A policy bundle (rego_bundle)."""
    return _entry("policy", name, version, bundle, manifest)

def _one_file(target):
    files = target.files.to_list()
    if len(files) != 1:
        fail("%s: one file expected, found %d" % (target.label, len(files)))
    return files[0]

def _spec(ctx):
    """Writes the list of entries for tools/lockfile; returns it and the files it names."""
    toolchain = ctx.toolchains[_GO_TOOLCHAIN]
    host = "%s/%s" % (toolchain.default_goos, toolchain.default_goarch)
    manifests = {}
    for target, keys in ctx.attr.manifests.items():
        for key in json.decode(keys):
            manifests[key] = _one_file(target)
    entries, inputs = [], manifests.values()
    for target, facts in ctx.attr.entries.items():
        file = _one_file(target)
        inputs.append(file)
        for fact in json.decode(facts):
            kind = _KINDS[fact["kind"]]
            entry = {
                "kind": fact["kind"],
                "name": fact["name"],
                "version": fact["version"],
                "platform": kind.platform or host,
                "path": "%s/%s%s" % (kind.folder, fact["name"], kind.ending),
                "source": file.path,
            }
            manifest = manifests.get(fact["kind"] + " " + fact["name"])
            if manifest:
                entry["manifest"] = manifest.path
            entries.append(entry)
    spec = ctx.actions.declare_file(ctx.label.name + ".spec.json")
    ctx.actions.write(spec, json.encode({"entries": entries}))
    return spec, inputs

_ATTRS = {
    "entries": attr.label_keyed_string_dict(allow_files = True, doc = "file -> its facts, a JSON list"),
    "manifests": attr.label_keyed_string_dict(allow_files = [".json"], doc = "file -> whose it is, a JSON list"),
    # cfg = "target" for the same reason as in tools/rego/rego.bzl.
    "_lockfile": attr.label(default = "//tools/lockfile/cmd/lockfile", executable = True, cfg = "target"),
}

def _run(ctx, out, flag, extra = []):
    spec, inputs = _spec(ctx)
    args = ctx.actions.args()
    args.add("-spec", spec)
    args.add_all(extra)
    args.add(flag)
    args.add_all([out], expand_directories = False)
    ctx.actions.run(
        executable = ctx.executable._lockfile,
        arguments = [args],
        inputs = inputs + [spec],
        outputs = [out],
        mnemonic = "LockFile",
        progress_message = "Locking %s" % ctx.label,
    )
    return [DefaultInfo(files = depset([out]), runfiles = ctx.runfiles([out]))]

def _dist_impl(ctx):
    return _run(ctx, ctx.actions.declare_directory(ctx.label.name), "-dir")

def _lockfile_impl(ctx):
    return _run(ctx, ctx.actions.declare_file(ctx.label.name + ".lock.json"), "-o", ["-lock", ctx.attr.lock])

_dist = rule(implementation = _dist_impl, attrs = _ATTRS, toolchains = [_GO_TOOLCHAIN])
_lockfile = rule(
    implementation = _lockfile_impl,
    attrs = dict(_ATTRS, lock = attr.string(mandatory = True, values = ["adapters", "policies", "tools"])),
    toolchains = [_GO_TOOLCHAIN],
)

def _group(entries):
    """Rules take labels as dictionary keys only: entries by file, and names by manifest."""
    files, manifests = {}, {}
    for e in entries:
        files.setdefault(e.file, []).append({"kind": e.kind, "name": e.name, "version": e.version})
        if e.manifest:
            manifests.setdefault(e.manifest, []).append(e.kind + " " + e.name)
    return {
        "entries": {label: json.encode(facts) for label, facts in files.items()},
        "manifests": {label: json.encode(keys) for label, keys in manifests.items()},
    }

def dist(name, entries, **kwargs):
    """The folder NAME: all three lock files and every file they name.

    Args:
        name: the folder.
        entries: adapter(), worker(), tool() and policy() calls.
        **kwargs: visibility, tags and the like.
    """
    _dist(name = name, **dict(_group(entries), **kwargs))

def lockfile(name, lock, entries, **kwargs):
    """One lock file, NAME.lock.json, without the files it names.

    Args:
        name: the file, without .lock.json.
        lock: adapters, policies or tools.
        entries: adapter() and worker(), policy(), or tool() calls.
        **kwargs: visibility, tags and the like.
    """
    _lockfile(name = name, lock = lock, **dict(_group(entries), **kwargs))
