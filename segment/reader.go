package segment

import "kring/ring"

// readersKept is how many readers without work a loop keeps; a catching-up consumer needs one for each partition it fetches.
const readersKept = 64

// look is a read that needs the index and the file.
type look struct {
	log        *Log
	seg        *segment
	from, upTo Offset
	maxBytes   int
	firstWhole bool
	r          *Range
}

// reader is a task that answers looks, one after the other.
type reader struct {
	files *Files
	task  *ring.Task
	work  look
	// inside: the caller of Files.look waits; answered: it was given its answer meanwhile.
	inside, answered bool
}

// look hands work to a reader. It is true if the answer is there already; else Range.Done is called later.
func (f *Files) look(work look) bool {
	work.seg.pin()
	var rd *reader
	if n := len(f.idle); n > 0 {
		rd, f.idle = f.idle[n-1], f.idle[:n-1]
	} else {
		rd = &reader{files: f}
	}
	rd.work, rd.inside, rd.answered = work, true, false
	if rd.task != nil {
		rd.task.Unpark()
	} else {
		ring.Go(f.loop, rd.run)
	}
	rd.inside = false
	return rd.answered
}

func (rd *reader) run(t *ring.Task) {
	rd.task = t
	for rd.answer(t) {
		t.Park()
	}
}

// answer does the work at hand; it is true if the reader is kept for more.
func (rd *reader) answer(t *ring.Task) bool {
	w := rd.work
	rd.work = look{}
	func() {
		defer w.seg.unpin()
		if err := w.log.readSlow(t, w.seg, w.from, w.upTo, w.maxBytes, w.firstWhole, w.r); err != nil {
			w.r.Err = err
		}
	}()
	if rd.answered = rd.inside; !rd.answered {
		w.r.Done(w.r) // which may ask another reader: this one is not idle yet
	}
	if len(rd.files.idle) >= readersKept {
		return false
	}
	rd.files.idle = append(rd.files.idle, rd)
	return true
}
