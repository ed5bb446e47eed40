// Package broker issues action grants. The local broker issues from deployment policy: it offers what the
// deployment's layer allows, and makes tokens that are bound to attempt, fence, action, scopes, expiry and use
// count. A token is a record and no secret: holding one grants nothing, since every use is checked against the
// fence that is in force and the uses that are recorded.
package broker
