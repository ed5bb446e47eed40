package way

// EmptyOrder is a work order for the tool `empty` of the tests' release set, which writes
// one small file. It reads no inputs.
func EmptyOrder() []byte {
	return []byte(`kind: writ.workorder.v1
title: Nearly nothing
objective: Write one small file.
mode: observe
role: analyst
environment:
  provider: wasm
tool:
  name: empty
outputs:
  max_count: 1
  max_bytes: 4096
  paths:
    - path: ok
      media_type: text/plain
`)
}
