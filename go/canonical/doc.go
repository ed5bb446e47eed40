// Package canonical turns documents and Go values into one byte string each, and names byte strings by digest.
//
// In: a strict JSON parser (Parse, Decode) that refuses whatever two readers could understand differently:
// duplicate keys, fractions, exponents, integers outside ±(2^53-1), broken UTF-8, lone surrogates, trailing
// bytes. Out: RFC 8785 bytes (Marshal from Go values, Canonicalize from JSON). Both ends refuse the same
// things, so what Marshal writes Parse reads (within its limits), and canonical bytes parse to themselves.
//
// The package also holds the typed ids, since they are part of what digests are taken over. It never reads a
// clock or a random source: both are parameters.
package canonical
