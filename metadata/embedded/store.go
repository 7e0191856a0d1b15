package embedded

import (
	"io"

	"kring/metadata"
	"kring/ring"
)

// Store is a metadata.Store whose only client is this process. It belongs to the loop it was opened on.
type Store struct{}

var _ metadata.Store = (*Store)(nil)

// Open reads or creates the store in dir (which must exist) and begins a new session: ephemeral nodes of the last one are
// gone. Damage other than a torn end of the log is an error naming file and offset.
func Open(t *ring.Task, dir string) (*Store, error) { panic("todo") }

// Do is metadata.Store's.
func (s *Store) Do(ops []metadata.Op, done func([]metadata.Result, error)) { panic("todo") }

// Get is metadata.Store's.
func (s *Store) Get(path string, watch bool, done func([]byte, metadata.Stat, error)) { panic("todo") }

// Exists is metadata.Store's.
func (s *Store) Exists(path string, watch bool, done func(metadata.Stat, error)) { panic("todo") }

// Children is metadata.Store's.
func (s *Store) Children(path string, watch bool, done func([]string, metadata.Stat, error)) {
	panic("todo")
}

// Events is metadata.Store's.
func (s *Store) Events(fn func(metadata.Event)) { panic("todo") }

// Session is metadata.Store's.
func (s *Store) Session() metadata.SessionID { panic("todo") }

// Close writes what is queued and closes the files; ephemeral nodes go.
func (s *Store) Close(t *ring.Task) error { panic("todo") }

// Export writes the tree as JSON: nodes with their data and stats, in order of paths.
func (s *Store) Export(w io.Writer) error { panic("todo") }
