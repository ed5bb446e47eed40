"""The front door of our own build rules: BUILD files load them from here."""

load("//tools/bzl:dist.bzl", _adapter = "adapter", _dist = "dist", _lockfile = "lockfile", _policy = "policy", _tool = "tool", _worker = "worker")
load("//tools/bzl:wasm.bzl", _wasm_tool = "wasm_tool")
load("//tools/rego:rego.bzl", _rego_bundle = "rego_bundle", _rego_test = "rego_test")

# Policies: compile a bundle, run its tests.
rego_bundle = _rego_bundle
rego_test = _rego_test

# WebAssembly tools.
wasm_tool = _wasm_tool

# The release set and its lock files; what an entry of them can be.
dist = _dist
lockfile = _lockfile
adapter = _adapter
policy = _policy
tool = _tool
worker = _worker
