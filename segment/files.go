package segment

import "kring/ring"

// filesDefault is how many files a log without shared Files keeps open.
const filesDefault = 64

// Files are the open segment files of a loop's logs. Above its limit the ones longest unused are closed, and opened again
// when they are needed.
type Files struct {
	loop   ring.Loop
	limit  int
	open   int
	oldest *segment
	newest *segment
	spare  [][][]byte // emptied vectors for writes
	idle   []*reader  // parked
	// unsaved are the logs whose leader epochs wait to be written, by saving tasks.
	unsaved []*Log
	saving  int
	// cramped are the log dirs in which there was no room lately.
	cramped map[string]*cramped
	mender  *Log   // makes index files anew
	toMend  []*Log // and then these
}

// NewFiles makes the open files shared by all logs of loop: at most limit stay open while nothing uses them.
func NewFiles(loop ring.Loop, limit int) *Files { return &Files{loop: loop, limit: max(limit, 1)} }

// Open is the number of files open.
func (f *Files) Open() int { return f.open }

func (f *Files) opened(s *segment) {
	f.open++
	f.link(s)
	f.shrink()
}

func (f *Files) closed(s *segment) {
	f.open--
	f.unlink(s)
}

// touch makes s the one used last.
func (f *Files) touch(s *segment) {
	if f.newest != s && s.listed {
		f.unlink(s)
		f.link(s)
	}
}

func (f *Files) link(s *segment) {
	s.older, s.newer, s.listed = f.newest, nil, true
	if f.newest != nil {
		f.newest.newer = s
	} else {
		f.oldest = s
	}
	f.newest = s
}

func (f *Files) unlink(s *segment) {
	if !s.listed {
		return
	}
	if s.older != nil {
		s.older.newer = s.newer
	} else {
		f.oldest = s.newer
	}
	if s.newer != nil {
		s.newer.older = s.older
	} else {
		f.newest = s.older
	}
	s.older, s.newer, s.listed = nil, nil, false
}

// shrink closes what was longest unused. What is in use counts, but stays; only a few are looked at in one go.
func (f *Files) shrink() {
	s := f.oldest
	for tries := 0; f.open > f.limit && s != nil && s != f.newest && tries < 32; tries++ {
		next := s.newer
		switch {
		case !s.idle():
		case s.synced || s.log.durable >= s.log.written:
			s.close()
		default: // a write-back error of a closed file may go unnoticed
			s.log.syncWanted = max(s.log.syncWanted, s.log.written)
			s.log.sync()
		}
		s = next
	}
}

// vector lends an empty slice for pending writes.
func (f *Files) vector() [][]byte {
	if n := len(f.spare); n > 0 {
		v := f.spare[n-1]
		f.spare = f.spare[:n-1]
		return v
	}
	return make([][]byte, 0, 16)
}

// giveBack takes a vector whose writes are done.
func (f *Files) giveBack(v [][]byte) {
	clear(v)
	if cap(v) > 0 && cap(v) <= 4096 && len(f.spare) < 64 {
		f.spare = append(f.spare, v[:0])
	}
}
