package main

// recovery is what is to know of the loading of the logs, by log dir; it stays when that is over.
func (p *page) recovery() {
	r := p.n.life.recovery.Load()
	if r == nil {
		return
	}
	p.gauge("remaining_logs_to_recover", "Logs to be loaded before the broker serves (Kafka's remainingLogsToRecover).")
	for _, d := range r.Dirs {
		p.is(uint64(d.LogsLeft), "dir", d.Path)
	}
	p.gauge("remaining_segments_to_recover", "Segments to be read of the logs at hand (Kafka's remainingSegmentsToRecover).")
	for _, d := range r.Dirs {
		p.is(uint64(d.SegmentsLeft), "dir", d.Path)
	}
	p.gauge("recovery_unclean", "1 if the last stop was not clean, so that logs are recovered.")
	for _, d := range r.Dirs {
		p.flag(!d.Clean, "dir", d.Path)
	}
	p.counter("recovery_segments_total", "Segments that were read because they might have been torn.")
	p.is(uint64(r.Segments))
	p.counter("recovery_bytes_total", "Bytes of batches that were read and checked because they might have been torn.")
	p.is(uint64(r.Bytes))
	p.gauge("recovery_seconds", "How long the loading of the logs has taken.")
	p.float(r.Took.Seconds())
}
