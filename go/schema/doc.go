// Package schema knows every kind of document: which schema a kind has, whether a document matches it, and how to
// tell a person what is wrong with theirs.
//
// A kind such as "writ.workorder.v1" is registered in schemas/registry.json with a JSON Schema (draft 2020-12).
// Nothing is ever loaded from elsewhere. Documents of people come as YAML or JSON and leave as canonical bytes
// with a digest; both forms of the same document give the same bytes.
//
// The YAML accepted is a subset that reads the same everywhere. Refused, each with a code of its own: anchors,
// aliases, merge keys, tags, directives, several documents in a file, duplicate keys, keys that are not strings,
// fractions and exponents, integers that are not plain decimal, and unquoted dates, times and base-60 numbers.
// What YAML 1.1 took for booleans (yes, no, on, off, y, n) are strings here, quoted or not, as in YAML 1.2.
package schema
