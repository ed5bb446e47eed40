package outbox

import (
	"context"
	"fmt"
	"os"

	"github.com/writ-runtime/writ/go/artifact"
	"github.com/writ-runtime/writ/go/capability"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/reason"
)

// ShadowFolder is the folder of the shadow namespace in a state folder.
const ShadowFolder = "shadow"

// Shadow is the one effector of the shadow namespace: it puts outputs below
// STATE/shadow/, where those who compare look and nobody else. It knows no destinations.
type Shadow struct {
	store *artifact.Store
	state string
	hands hands
}

// OpenShadow opens the shadow namespace of a state folder.
func OpenShadow(state string, store *artifact.Store) *Shadow {
	return &Shadow{store: store, state: state}
}

// Prepare is Outbox.Prepare for what an isolated result stands behind.
func (s *Shadow) Prepare(ctx context.Context, a Isolated, p Proposal, try int, allowed capability.Set) (Sending, error) {
	if a.isolated == nil {
		return Sending{}, unproven(p)
	}
	if err := p.Check(); err != nil {
		return Sending{}, err
	}
	if p.Effector != operation.ShadowPublish {
		return Sending{}, reason.New(reason.OutboxNotAuthoritative, fmt.Sprintf("a result of the shadow namespace reaches no %s", p.Effector), string(p.Attempt),
			"propose shadow_publish")
	}
	f := folder{hands: s.hands, name: p.Name(), destination: p.Destination, open: s.place,
		content: func(context.Context, bool) (*content, error) { return newContent(p, s.store, nil) }}
	return prepare(ctx, a.isolated, s.store, p, Class, try, allowed, place{Path: ShadowFolder}, f, s.hands, s.state)
}

func (s *Shadow) place() (*os.File, error) { return s.hands.stateFolder(s.state, ShadowFolder) }
