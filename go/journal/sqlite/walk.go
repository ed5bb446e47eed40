package sqlite

import (
	"context"
	"fmt"
	"math"
	"sync"
)

// A walk reads ahead by chunks of this many rows or bytes, whichever comes first, so that
// its memory does not grow with the journal.
const (
	chunkRows  = 64
	chunkBytes = 1 << 20
	// chunksAhead is how many chunks wait decoded for who consumes them.
	chunksAhead = 2
)

// chunk is a run of rows that are decoded beside each other.
type chunk struct {
	rows    []row
	err     error // of reading on after the rows
	decoded sync.WaitGroup
}

// all is more batches than any journal has.
const all = math.MaxInt64

// eachBatch calls f for up to limit batches from the first given sequence on, in order. While
// f looks at some, the next are decoded and those after them read. An error of f ends the
// walk; what was read ahead then is wasted, so who knows how many it wants says so.
func eachBatch(ctx context.Context, q querier, first, limit int64, f func(*row) error) error {
	ctx, cancel := context.WithCancel(ctx)
	chunks := make(chan *chunk, chunksAhead)
	var reading sync.WaitGroup
	reading.Go(func() {
		defer close(chunks)
		readChunks(ctx, q, first, limit, chunks)
	})
	// The connection is the caller's again only once the reader has let go of it.
	defer reading.Wait()
	defer cancel()
	for c := range chunks {
		c.decoded.Wait()
		for i := range c.rows {
			if err := f(&c.rows[i]); err != nil {
				return err
			}
		}
		if c.err != nil {
			return c.err
		}
	}
	return nil
}

// readChunks reads until the rows or the context end. What ends it early is the error of
// the last chunk.
func readChunks(ctx context.Context, q querier, first, limit int64, to chan<- *chunk) {
	c, bytes := new(chunk), 0
	send := func() bool {
		half := (len(c.rows) + 1) / 2
		for _, part := range [][]row{c.rows[:half], c.rows[half:]} {
			if len(part) > 0 {
				c.decoded.Go(func() {
					for i := range part {
						part[i].decode()
					}
				})
			}
		}
		select {
		case to <- c:
			c, bytes = new(chunk), 0
			return true
		case <-ctx.Done():
			c.decoded.Wait()
			return false
		}
	}
	rows, err := q.QueryContext(ctx, `SELECT seq, identity, body, prev, chain FROM batches WHERE seq >= ? ORDER BY seq LIMIT ?`, first, limit)
	if err != nil {
		c.err = err
		send()
		return
	}
	defer rows.Close()
	for rows.Next() {
		var r row
		if c.err = rows.Scan(&r.seq, &r.identity, (*kept)(&r.body), (*kept)(&r.prev), (*kept)(&r.chain)); c.err != nil {
			break
		}
		c.rows = append(c.rows, r)
		if bytes += len(r.body); len(c.rows) == chunkRows || bytes >= chunkBytes {
			if !send() {
				return
			}
		}
	}
	if c.err == nil {
		c.err = rows.Err()
	}
	send()
}

// kept takes bytes as the driver hands them over. database/sql would copy them, a tenth of what
// a walk takes: it cannot know that this driver makes bytes of its own for each row, to which
// TestRowsKeepTheirBytes holds it. Other bytes than were stored would not have their digest.
type kept []byte

// Scan implements sql.Scanner.
func (k *kept) Scan(src any) error {
	switch v := src.(type) {
	case nil:
		*k = nil
	case []byte:
		*k = v
	default: // Of another type in a file that is damaged.
		*k = fmt.Append(nil, v)
	}
	return nil
}
