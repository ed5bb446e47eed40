// Package sdk is what a vendor of an executor adapter imports. An adapter is one program: it implements Adapter,
// embedding Base for what it does not need, and calls Serve.
//
//	type adapter struct{ sdk.Base }
//
//	func (adapter) Prepare(ctx context.Context, h sdk.Host, in sdk.Prepare) (sdk.Prepared, error) { … }
//	func (adapter) Start(ctx context.Context, h sdk.Host, in sdk.Start) (sdk.Started, error) { … }
//
//	func main() { sdk.Serve(adapter{}, sdk.Info{Name: "mine", Version: "1.0.0", Capabilities: manifest}) }
//
// An adapter has no storage and no authority. Whatever it wants to happen it asks of its Host, under keys that follow
// from the attempt bundle; after a crash it is started again, runs the same code, and is answered from the host's
// journal. So the same call must lead to the same answer: no clock, no randomness, no memory of its own.
//
// An error that is a *reason.Refusal says that the adapter did not do it, and why. Every other error counts as
// adapter.failed. A context that ended is neither: the host takes it as a lost answer.
package sdk
