package sqlite

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"strconv"

	"github.com/writ-runtime/writ/go/journal"
	"github.com/writ-runtime/writ/go/reason"
)

// The keys of the meta table.
const (
	keyEpoch = "epoch" // decimal, rises by one with each opening for writing
	keyHalt  = "halt"  // one sentence: what was found damaged; absent while sound
)

// metaSum guards a row of meta against flipped bits. It is no proof against somebody
// who writes the file on purpose; signed evidence is.
func metaSum(key, value string) []byte {
	s := sha256.Sum256([]byte("writ.journal.meta\x00" + key + "\x00" + value))
	return s[:]
}

// readMeta returns the value of a key; ok is false when there is none. A row that
// does not have its sum is refused with journal.corrupt.
func readMeta(ctx context.Context, q querier, key string) (value string, ok bool, err error) {
	var sum []byte
	err = q.QueryRowContext(ctx, `SELECT value, sum FROM meta WHERE key = ?`, key).Scan(&value, &sum)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return "", false, nil
	case err != nil:
		return "", false, err
	case string(sum) != string(metaSum(key, value)):
		return "", false, reason.New(reason.JournalCorrupt, "a row of the journal's meta table is damaged", "meta "+key,
			"run `writ verify` to see the extent")
	}
	return value, true, nil
}

func readEpoch(ctx context.Context, q querier) (uint64, error) {
	value, ok, err := readMeta(ctx, q, keyEpoch)
	if err != nil {
		return 0, err
	}
	return parseEpoch(value, ok)
}

// parseEpoch reads the value of the epoch's row; ok says whether the row is there and sound.
func parseEpoch(value string, ok bool) (uint64, error) {
	epoch, err := strconv.ParseUint(value, 10, 53)
	if !ok || err != nil {
		return 0, reason.New(reason.JournalCorrupt, "the journal has no writer epoch", "meta "+keyEpoch,
			"run `writ verify` to see the extent")
	}
	return epoch, nil
}

// haltText is what the halt row keeps of a damage.
func haltText(d journal.Damage) string {
	if d.Sequence == 0 {
		return d.Where + ": " + d.What
	}
	return fmt.Sprintf("batch %d, %s: %s", d.Sequence, d.Where, d.What)
}

// halted is the refusal that a persistent halt gives.
func halted(found, path string) *reason.Refusal {
	return reason.New(reason.JournalHalted, "the journal is halted because damage was found: "+found, path,
		"reading still works; `writ recover` shows what is damaged and how to go on")
}
