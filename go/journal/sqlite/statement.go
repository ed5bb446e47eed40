package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
)

// statement is one prepared statement on the writer's own connection. It speaks to the
// driver: database/sql costs as much again as a small insert, and manages a pool where
// there is one connection. It belongs to one goroutine.
type statement struct {
	stmt  driver.Stmt
	exec  driver.StmtExecContext
	query driver.StmtQueryContext
	named []driver.NamedValue
}

func prepare(conn driver.Conn, text string) (*statement, error) {
	stmt, err := conn.Prepare(text)
	if err != nil {
		return nil, err
	}
	s := &statement{stmt: stmt}
	var okExec, okQuery bool
	s.exec, okExec = stmt.(driver.StmtExecContext)
	s.query, okQuery = stmt.(driver.StmtQueryContext)
	if !okExec || !okQuery {
		return nil, errors.Join(fmt.Errorf("the driver's statement is a %T", stmt), stmt.Close())
	}
	return s, nil
}

// bind takes int64, string and []byte. A nil []byte would be NULL; callers pass none.
func (s *statement) bind(args []driver.Value) []driver.NamedValue {
	s.named = s.named[:0]
	for i, a := range args {
		s.named = append(s.named, driver.NamedValue{Ordinal: i + 1, Value: a})
	}
	return s.named
}

// run executes the statement and returns how many rows it changed. No context can end
// it: a commit that has begun is finished.
func (s *statement) run(args ...driver.Value) (changed int64, err error) {
	res, err := s.exec.ExecContext(context.Background(), s.bind(args))
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

// row reads the first row of the answer into dest, which has its width.
func (s *statement) row(dest []driver.Value, args ...driver.Value) (found bool, err error) {
	rows, err := s.query.QueryContext(context.Background(), s.bind(args))
	if err != nil {
		return false, err
	}
	err = rows.Next(dest)
	found = err == nil
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return found, errors.Join(err, rows.Close())
}
