package sqlite

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
)

const (
	// fileName is the journal's file in the state folder.
	fileName = "journal.db"
	// applicationID marks the file as a Writ journal: "WRIT" in ASCII.
	applicationID = 0x57524954
	// userVersion is the version of the tables below.
	userVersion = 1
)

// object is one object of the schema with the statement that makes it. SQLite keeps
// the statement's text, so that the stored schema can be compared word for word.
type object struct{ kind, name, table, sql string }

// schemaV1 returns the schema in the order it is made.
//
// Bodies stay out of every key: batches is the only table that holds them, keyed by
// its rowid. The tables without rowid are indexes that can be rebuilt from bodies.
// Subjects and keys stand as text in each of them, so that a person with any SQLite
// shell can read the file.
func schemaV1() []object {
	table := func(name, sql string) object { return object{"table", name, name, sql} }
	never := func(table, verb, when string) object {
		name := table + "_no_" + strings.ToLower(verb)
		return object{"trigger", name, table, "CREATE TRIGGER " + name + " BEFORE " + verb + " ON " + table + when +
			" BEGIN SELECT RAISE(ABORT, 'the journal is append-only'); END"}
	}
	return []object{
		// meta holds the writer epoch and, after damage, the halt; sum guards a row
		// that no chain covers.
		table("meta", `CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL, sum BLOB NOT NULL) STRICT, WITHOUT ROWID`),
		table("batches", `CREATE TABLE batches (seq INTEGER PRIMARY KEY, identity TEXT NOT NULL, body BLOB NOT NULL, prev BLOB NOT NULL, chain BLOB NOT NULL) STRICT`),
		table("identities", `CREATE TABLE identities (identity TEXT PRIMARY KEY, seq INTEGER NOT NULL, digest BLOB NOT NULL) STRICT, WITHOUT ROWID`),
		table("subjects", `CREATE TABLE subjects (subject TEXT PRIMARY KEY, version INTEGER NOT NULL, seq INTEGER NOT NULL) STRICT, WITHOUT ROWID`),
		table("events", `CREATE TABLE events (subject TEXT NOT NULL, version INTEGER NOT NULL, seq INTEGER NOT NULL, ordinal INTEGER NOT NULL, PRIMARY KEY (subject, version)) STRICT, WITHOUT ROWID`),
		// What a blob's media type is, a batch says; two may say different things of
		// the same bytes.
		table("blobs", `CREATE TABLE blobs (digest BLOB NOT NULL UNIQUE, bytes BLOB NOT NULL) STRICT`),
		never("batches", "UPDATE", ""),
		never("batches", "DELETE", ""),
		never("identities", "UPDATE", ""),
		never("identities", "DELETE", ""),
		never("events", "UPDATE", ""),
		never("events", "DELETE", ""),
		never("subjects", "UPDATE", " WHEN new.subject <> old.subject OR new.version <= old.version OR new.seq <= old.seq"),
		never("subjects", "DELETE", ""),
		never("blobs", "UPDATE", ""),
		// Deleting a blob is allowed: its bytes can be collected.
	}
}

// fingerprint is the SHA-256 over every object of a schema, sorted by name.
func fingerprint(objects []object) string {
	sorted := slices.Clone(objects)
	slices.SortFunc(sorted, func(a, b object) int { return strings.Compare(a.name, b.name) })
	h := sha256.New()
	for _, o := range sorted {
		fmt.Fprintf(h, "%s\x00%s\x00%s\x00%s\x00", o.kind, o.name, o.table, o.sql)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// storedSchema reads the schema as the file has it. Indexes that SQLite makes for
// itself have no text and say nothing.
func storedSchema(ctx context.Context, q querier) ([]object, error) {
	rows, err := q.QueryContext(ctx, `SELECT type, name, tbl_name, coalesce(sql, '') FROM sqlite_schema`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var objects []object
	for rows.Next() {
		var o object
		if err := rows.Scan(&o.kind, &o.name, &o.table, &o.sql); err != nil {
			return nil, err
		}
		if o.kind == "index" && o.sql == "" && strings.HasPrefix(o.name, "sqlite_autoindex_") {
			continue
		}
		objects = append(objects, o)
	}
	return objects, rows.Err()
}

// querier is what *sql.DB, *sql.Conn and *sql.Tx have in common.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}
