package operation

// Kind is what an operation does. The mutating calls of the executor and provider
// protocols each have one, and so has every host service that acts for an adapter.
type Kind string

// The kinds of SPEC-014, and the host services below them.
const (
	Provision   Kind = "provision"
	Materialize Kind = "materialize"
	Freeze      Kind = "freeze_outputs"
	Reset       Kind = "reset"
	Destroy     Kind = "destroy"

	Prepare    Kind = "prepare"
	Start      Kind = "start"
	Checkpoint Kind = "checkpoint"
	Cancel     Kind = "cancel"
	Collect    Kind = "collect"
	Cleanup    Kind = "cleanup"

	// Launch is the host service by which an adapter has a process started in the
	// attested environment: a sub-operation of start.
	Launch Kind = "launch"
)

// The kinds of the outbox: what leaves after a result was accepted.
const (
	// Publish puts a folder of outputs at a destination of the deployment.
	Publish Kind = "publish"
	// Branch makes a new branch in a local repository.
	Branch Kind = "branch"
	// ReviewPacket puts a folder for reviewers at a destination of the deployment.
	ReviewPacket Kind = "review_packet"
	// ShadowPublish puts a folder of outputs where only those who compare look.
	ShadowPublish Kind = "shadow_publish"
)

// The kinds that later work brings. They are registered, with their classes, and this
// release refuses to order them.
const (
	// ModelCall is a call to a model by way of the model gateway, whose receipts say what
	// became of it: it costs and changes nothing else.
	ModelCall Kind = "model_call"
	// Egress is granted access to a destination that can change something there and has no
	// key by which it could be asked about.
	Egress Kind = "egress"
)

// Closing reports whether k may begin under a fence in its closing phase: these
// kinds stop, keep or remove, and start nothing new. Asking (reconcile) begins no
// operation and is always allowed.
func (k Kind) Closing() bool {
	switch k {
	case Cancel, Freeze, Collect, Cleanup, Reset, Destroy:
		return true
	}
	return false
}

// OfEnvironment reports whether k is a call of the environment provider.
func (k Kind) OfEnvironment() bool {
	switch k {
	case Provision, Materialize, Freeze, Reset, Destroy:
		return true
	}
	return false
}

// OfOutbox reports whether what k does leaves, and stays when its attempt is closed.
func (k Kind) OfOutbox() bool {
	switch k {
	case Publish, Branch, ReviewPacket, ShadowPublish:
		return true
	}
	return false
}

// ReceiptName is the name of the receipt of k: SPEC-014's, where it gives one.
func (k Kind) ReceiptName() string {
	switch k {
	case Provision:
		return "ProvisionReceipt"
	case Materialize:
		return "MaterializationReceipt"
	case Freeze:
		return "OutputFreezeReceipt"
	case Reset:
		return "ResetReceipt"
	case Destroy:
		return "DestructionReceipt"
	case Prepare:
		return "PrepareReceipt"
	case Start:
		return "StartReceipt"
	case Checkpoint:
		return "CheckpointOperationReceipt"
	case Cancel:
		return "CancelReceipt"
	case Collect:
		return "CollectionReceipt"
	case Cleanup:
		return "CleanupReceipt"
	case Launch:
		return "LaunchReceipt"
	case Publish:
		return "PublicationReceipt"
	case Branch:
		return "BranchReceipt"
	case ReviewPacket:
		return "ReviewPacketReceipt"
	case ShadowPublish:
		return "ShadowPublicationReceipt"
	case ModelCall:
		return "ModelCallReceipt"
	case Egress:
		return "EgressReceipt"
	}
	return ""
}

// Known reports whether k is a registered kind.
func (k Kind) Known() bool { return k.ReceiptName() != "" }

// Kinds returns every registered kind.
func Kinds() []Kind {
	return []Kind{
		Provision, Materialize, Freeze, Reset, Destroy,
		Prepare, Start, Checkpoint, Cancel, Collect, Cleanup, Launch,
		Publish, Branch, ReviewPacket, ShadowPublish,
		ModelCall, Egress,
	}
}
