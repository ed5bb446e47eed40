package ingress

import (
	"context"
	"time"
)

// Patience, MaxConnections and MaxLarge are the bounds of the channel.
const (
	Patience       = patience
	MaxConnections = maxConnections
	MaxLarge       = maxLarge
)

// SendWithin is Send with another patience.
func SendWithin(ctx context.Context, state string, r Request, value any, within time.Duration) (bool, error) {
	return send(ctx, state, r, value, within)
}
