package embedded

// check holds the store to what must always be true; a breach is our own fault and ends the process.
func (s *Store) check() {
	switch {
	case s.synced > s.writing || s.writing > s.asked: // 1: nothing is durable before it was written, nor written before it was asked for
		panic("embedded: changes are counted wrongly")
	case s.syncedZxid > s.tree.zxid: // 2: the log is never ahead of the tree
		panic("embedded: the log is ahead of the tree")
	case len(s.pending) == 0 && !s.busy && s.asked != s.synced && s.fenced == nil: // 3: what is not durable is on its way
		panic("embedded: a change was lost between the tree and the log")
	}
}
