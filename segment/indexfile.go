package segment

// indexFile is one index of a segment: a prefix on file, the newest entries in memory, and what memory lacks is on file.
type indexFile struct {
	mem    []byte // entries first and on
	first  int    // entries that are on file only
	disk   int    // entries on file; the file may be longer and is cut when the segment is closed
	width  int
	saved  bool // the file exists, has no more than disk entries and is durable
	absent bool // there is no file
}

func (x *indexFile) len() int { return x.first + len(x.mem)/x.width }

// whole says whether every entry is in memory.
func (x *indexFile) whole() bool { return x.first == 0 }

// drop forgets what is also on file.
func (x *indexFile) drop() {
	if x.disk == x.len() {
		x.mem, x.first = nil, x.disk
	}
}

// unwritten are the entries the file lacks.
func (x *indexFile) unwritten() []byte { return x.mem[(x.disk-x.first)*x.width:] }

// fill puts the entries that were on file only before those in memory; b is the file's start.
func (x *indexFile) fill(b []byte) {
	b = b[:x.first*x.width]
	x.mem = append(b[:len(b):len(b)], x.mem...)
	x.first = 0
}

// set replaces all entries by mem, of which none is on file.
func (x *indexFile) set(mem []byte) { x.mem, x.first, x.disk, x.saved = mem, 0, 0, false }

// keep cuts the entries to the first n bytes of memory; all of them must be in memory.
func (x *indexFile) keep(n int) {
	x.mem = x.mem[:n]
	if x.disk > x.len() {
		x.disk, x.saved = x.len(), false
	}
}
