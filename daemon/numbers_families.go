package main

import (
	"strconv"

	"kring/coordinator"
	"kring/daemon/api"
	"kring/daemon/broker"
	"kring/daemon/server"
	"kring/wire"
)

// ringFamilies are the numbers every loop has one of.
var ringFamilies = []struct {
	name, help string
	of         func(*broker.Figures) uint64
}{
	{"loop_turns_total", "Turns of the loop.", func(f *broker.Figures) uint64 { return f.Ring.Turns }},
	{"loop_sleeps_total", "Enters that gave the processor away because there was nothing to do.",
		func(f *broker.Figures) uint64 { return f.Ring.Sleeps }},
	{"loop_posts_total", "Messages from other loops and threads.", func(f *broker.Figures) uint64 { return f.Ring.Posts }},
	{"loop_wakes_total", "Times the loop was woken from sleep by a message.", func(f *broker.Figures) uint64 { return f.Ring.Wakes }},
	{"loop_offloads_total", "Pieces of work given to helper threads.", func(f *broker.Figures) uint64 { return f.Ring.Offloads }},
	{"ring_enters_total", "System calls that enter the ring.", func(f *broker.Figures) uint64 { return f.Ring.Enters }},
	{"ring_submissions_total", "Operations submitted to the ring.", func(f *broker.Figures) uint64 { return f.Ring.Submissions }},
	{"ring_completions_total", "Completions taken from the ring.", func(f *broker.Figures) uint64 { return f.Ring.Completions }},
	{"ring_hand_offs_total", "Operations the kernel always gives to its worker threads: syncs, allocations, renames and their like.",
		func(f *broker.Figures) uint64 { return f.Ring.HandOffs }},
	{"ring_punts_total", "Writes that would have had to wait (EAGAIN) and were left to the ring.",
		func(f *broker.Figures) uint64 { return f.Ring.Punts }},
	{"ring_no_buffers_total", "Receives that ended for want of buffers (ENOBUFS).",
		func(f *broker.Figures) uint64 { return f.Ring.NoBuffers }},
	{"ring_received_bytes_total", "Bytes received from connections.", func(f *broker.Figures) uint64 { return f.Ring.ReceivedBytes }},
	{"ring_sent_bytes_total", "Bytes sent to connections.", func(f *broker.Figures) uint64 { return f.Ring.SentBytes }},
	{"ring_sends_total", "Sends by the ring.", func(f *broker.Figures) uint64 { return f.Ring.Sends }},
	{"ring_sendfiles_total", "Calls of sendfile.", func(f *broker.Figures) uint64 { return f.Ring.Sendfiles }},
	{"ring_sendfile_bytes_total", "Bytes sent from files without passing through the process.",
		func(f *broker.Figures) uint64 { return f.Ring.SendfileBytes }},
	{"ring_read_aheads_total", "Ranges that had to be read from disk before they could be sent.",
		func(f *broker.Figures) uint64 { return f.Ring.ReadAheads }},
	{"ring_written_bytes_total", "Bytes written to logs.", func(f *broker.Figures) uint64 { return f.Ring.WrittenBytes }},
	{"ring_slow_writes_total", "Writes that held up the loop for over a millisecond.",
		func(f *broker.Figures) uint64 { return f.Ring.SlowWrites }},
	{"ring_write_outs_total", "Times a helper was told to begin writing dirty bytes out.",
		func(f *broker.Figures) uint64 { return f.Ring.WriteOuts }},
	{"ring_buffer_lent_bytes", "Memory of buffers that is in use.",
		func(f *broker.Figures) uint64 { return uint64(max(f.Ring.InUse, 0)) }},
	{"ring_buffer_resident_bytes", "Memory of buffers that is in use or kept at hand.",
		func(f *broker.Figures) uint64 { return uint64(max(f.Ring.Resident, 0)) }},
	{"requests_in_flight", "Requests that are not answered yet.", func(f *broker.Figures) uint64 { return uint64(f.Busy) }},
	{"request_bytes_in_flight", "Bytes of requests that are not answered yet, and what they take when decoded.",
		func(f *broker.Figures) uint64 { return uint64(max(f.Held, 0)) }},
	{"receive_pauses_total", "Times a connection was not read from because too much was in flight.",
		func(f *broker.Figures) uint64 { return f.Server.Pauses }},
	{"connections", "Open connections.", func(f *broker.Figures) uint64 { return uint64(f.Connections) }},
	{"connections_accepted_total", "Connections taken.", func(f *broker.Figures) uint64 { return f.Server.Accepted }},
}

// requests are counted by API over all loops.
func (p *page) requests() {
	var sums [wire.KeyMax + 1]*server.API
	for _, c := range p.loops {
		for i := range c.good.APIs {
			a := &c.good.APIs[i]
			if sums[a.Key] == nil {
				sums[a.Key] = &server.API{Key: a.Key}
			}
			sums[a.Key].Add(a)
		}
	}
	each := func(of func(name string, a *server.API)) {
		for _, a := range sums {
			if a != nil {
				of(wire.Name(a.Key), a)
			}
		}
	}
	p.counter("requests_total", "Requests taken.")
	each(func(name string, a *server.API) { p.is(a.Requests, "api", name) })
	p.counter("request_errors_total", "Error codes in answers, by Kafka's names; one answer may hold several.")
	each(func(name string, a *server.API) {
		for c := wire.UnknownServerError; c <= wire.CodeMax; c++ {
			if n := a.Error(c); n > 0 {
				p.is(n, "api", name, "error", c.String())
			}
		}
	})
	p.counter("request_bytes_total", "Bytes of requests.")
	each(func(name string, a *server.API) { p.is(a.RequestBytes, "api", name) })
	p.counter("response_bytes_total", "Bytes of answers.")
	each(func(name string, a *server.API) { p.is(a.ResponseBytes, "api", name) })
	p.begin("request_duration_seconds", "histogram",
		"From when a request is taken until its answer has left, waiting included (Kafka's TotalTimeMs).")
	each(p.histogram)
}

func (p *page) histogram(name string, a *server.API) {
	family, sum := p.name, uint64(0)
	for i, n := range a.Latency.Buckets {
		sum += n
		p.name = family + "_bucket"
		p.is(sum, "api", name, "le", seconds(a.Latency.Bound(i)))
	}
	p.name = family + "_sum"
	p.float(a.Latency.Sum.Seconds(), "api", name)
	p.name = family + "_count"
	p.is(a.Latency.Count, "api", name)
	p.name = family
}

func (p *page) connections() {
	var closed [server.Reasons]uint64
	refused := uint64(0)
	for _, c := range p.loops {
		for r, n := range c.good.Server.Closed {
			closed[r] += n
		}
		refused += c.good.Refused
	}
	p.counter("connections_closed_total", "Connections closed, by reason.")
	for r := 1; r < server.Reasons; r++ {
		p.is(closed[r], "reason", server.Reason(r).Label())
	}
	p.counter("connections_refused_total", "Connections turned away by max.connections and max.connections.per.ip.")
	p.is(refused)
}

// traffic is records in and out: in all, and by topic as far as the limit goes.
func (p *page) traffic() {
	var all api.TopicFigures
	for _, c := range p.loops {
		all.BytesIn += c.good.Bytes.BytesIn
		all.MessagesIn += c.good.Bytes.MessagesIn
		all.BytesOut += c.good.Bytes.BytesOut
	}
	p.counter("bytes_in_total", "Bytes of record batches that clients produced.")
	p.is(all.BytesIn)
	p.counter("messages_in_total", "Records that clients produced.")
	p.is(all.MessagesIn)
	p.counter("bytes_out_total", "Bytes of record batches fetched.")
	p.is(all.BytesOut)
}

// partitions are the figures of logs: sums, and of each partition and topic as far as the limit goes.
func (p *page) partitions() {
	var sum broker.LogFigures
	figures := make([]*broker.Figures, len(p.loops))
	noRoom := map[string]bool{}
	for i, c := range p.loops {
		figures[i] = c.good
		sum.Add(&c.good.Logs)
		for _, dir := range c.good.NoRoom {
			noRoom[dir] = true
		}
	}
	for _, g := range []struct {
		name, help string
		n          int
	}{
		{"partitions", "Partitions on this broker.", sum.Partitions},
		{"leader_partitions", "Partitions this broker leads.", sum.Leaders},
		{"offline_partitions", "Partitions whose log has failed, or could not be opened.", sum.Offline},
		{"log_dirs", "Log dirs.", p.loops[0].good.LogDirs},
		{"log_dirs_offline", "Log dirs that are offline until the next start (Kafka's OfflineLogDirectoryCount).",
			p.loops[0].good.LogDirsOffline},
		{"log_dirs_without_room", "Log dirs that had no room lately for a log or what was to be appended to one.", len(noRoom)},
		{"partitions_without_room", "Partitions that are offline until there is room for their logs; some of kring_offline_partitions.",
			p.loops[0].good.PartitionsNoRoom},
		{"under_min_isr_partitions", "Partitions that fewer replicas than min.insync.replicas follow.", sum.UnderMinISR},
		{"log_segments", "Segments of all logs.", sum.Segments},
		{"log_open_files", "Files of segments that are open.", sum.OpenFiles},
		{"log_size_bytes", "Size of all logs.", int(sum.Bytes)},
	} {
		p.gauge(g.name, g.help)
		p.is(uint64(g.n))
	}
	topics, parts := broker.Merge(figures, p.n.most)
	p.gauge("partitions_left_out", "Partitions without numbers of their own, for kring.metrics.partitions.max.")
	p.is(uint64(max(sum.Partitions-len(parts), 0)))
	p.topics(topics)
	p.groups(parts)
	labels := make([]string, len(parts))
	for i := range parts {
		labels[i] = labelled([]string{"topic", parts[i].Topic, "partition", strconv.Itoa(int(parts[i].Partition))})
	}
	for _, f := range partitionFamilies {
		p.gauge(f.name, f.help)
		for i := range parts {
			p.whole(f.of(&parts[i]), labels[i])
		}
	}
}

func (p *page) topics(topics []broker.TopicFigures) {
	for _, f := range []struct {
		name, help string
		of         func(*broker.TopicFigures) uint64
	}{
		{"topic_bytes_in_total", "Bytes of record batches that clients produced to a topic.",
			func(t *broker.TopicFigures) uint64 { return t.BytesIn }},
		{"topic_messages_in_total", "Records that clients produced to a topic.", func(t *broker.TopicFigures) uint64 { return t.MessagesIn }},
		{"topic_bytes_out_total", "Bytes of record batches fetched from a topic.",
			func(t *broker.TopicFigures) uint64 { return t.BytesOut }},
	} {
		p.counter(f.name, f.help)
		for i := range topics {
			p.is(f.of(&topics[i]), "topic", topics[i].Topic)
		}
	}
}

// groups are figures of consumer groups: sums, and each committed offset with its lag as far as the limit goes.
func (p *page) groups(parts []broker.PartitionFigures) {
	var sum broker.GroupFigures
	for _, c := range p.loops {
		sum.Add(&c.good.Groups)
	}
	p.gauge("groups", "Consumer groups, by Kafka's names of their states.")
	for i, n := range sum.States {
		if s := coordinator.State(i); s != coordinator.Dead {
			p.is(uint64(n), "state", s.String())
		}
	}
	p.gauge("group_partitions_failed", "Partitions of __consumer_offsets whose groups could not be loaded and are not served.")
	p.is(uint64(sum.Failed))
	p.counter("group_rebalances_total", "Generations of groups that began.")
	p.is(sum.Rebalances)
	p.counter("group_offset_commits_total", "Offsets that were committed.")
	p.is(sum.Commits)
	p.counter("group_offsets_expired_total", "Committed offsets that were forgotten because of their age.")
	p.is(sum.Expired)
	p.gauge("group_offsets", "Offsets that are committed, of all groups.")
	p.is(uint64(sum.Offsets))
	committed := broker.Lag(sum.Committed, parts, p.n.most)
	p.gauge("group_offsets_left_out", "Committed offsets without numbers of their own, for kring.metrics.partitions.max.")
	p.is(uint64(max(sum.Offsets-len(committed), 0)))
	p.gauge("group_offset", "Offset a group has committed of a partition.")
	labels := make([]string, len(committed))
	for i := range committed {
		c := &committed[i]
		labels[i] = labelled([]string{"group", c.Group, "topic", c.Topic, "partition", strconv.Itoa(int(c.Partition))})
		p.whole(c.Offset, labels[i])
	}
	p.gauge("group_lag", "Records between what a group has committed and the partition's high watermark.")
	for i := range committed {
		if c := &committed[i]; c.Lag >= 0 {
			p.whole(c.Lag, labels[i])
		}
	}
}

func (p *page) cleaner() {
	f := &p.loops[0].good.Cleaner
	p.gauge("cleaner_running", "Logs that are being cleaned.")
	p.is(uint64(f.Running))
	p.gauge("cleaner_uncleanable_partitions", "Logs that cannot be cleaned and are left alone.")
	p.is(uint64(f.Aside))
	p.counter("cleaner_cleanings_total", "Cleanings that ended well.")
	p.is(f.Cleanings)
	p.counter("cleaner_read_bytes_total", "Bytes the cleaner has read.")
	p.is(f.ReadBytes)
	p.counter("cleaner_written_bytes_total", "Bytes the cleaner has written.")
	p.is(f.WrittenBytes)
	p.gauge("cleaner_max_dirty_ratio", "Dirty share of the dirtiest log when the cleaner last looked.")
	p.float(f.DirtyRatio)
	p.gauge("cleaner_cleanable_bytes", "Dirty bytes of all logs when the cleaner last looked.")
	p.is(uint64(max(f.DirtyBytes, 0)))
	p.gauge("cleaner_uncleanable_bytes", "Dirty bytes of logs that cannot be cleaned.")
	p.is(uint64(max(f.AsideBytes, 0)))
	p.gauge("cleaner_max_compaction_delay_seconds", "By how much a log exceeds its max.compaction.lag.ms, at the last look.")
	p.float(f.Overdue.Seconds())
	p.gauge("cleaner_since_last_run_seconds", "Time since the cleaner has looked at the logs; -1 before it did.")
	if f.SinceLook < 0 {
		p.float(-1)
	} else {
		p.float(f.SinceLook.Seconds())
	}
	p.gauge("cleaner_max_clean_seconds", "The longest cleaning since the start.")
	p.float(f.Longest.Seconds())
	p.gauge("cleaner_last_clean_seconds", "The time the last cleaning took.")
	p.float(f.Last.Seconds())
	p.gauge("cleaner_buffer_utilization_ratio", "How full of keys the cleaner's memory was in the last cleaning.")
	p.float(f.LastFull)
	p.gauge("cleaner_recopy_ratio", "Share of what it has copied that the last cleaning kept.")
	p.float(f.LastKept)
}

// partitionFamilies are the numbers every partition has one of.
var partitionFamilies = []struct {
	name, help string
	of         func(*broker.PartitionFigures) int64
}{
	{"partition_log_size_bytes", "Size of a partition's log.", func(f *broker.PartitionFigures) int64 { return f.Bytes }},
	{"partition_log_segments", "Segments of a partition's log.", func(f *broker.PartitionFigures) int64 { return int64(f.Segments) }},
	{"partition_log_start_offset", "First offset of a partition.", func(f *broker.PartitionFigures) int64 { return f.Start }},
	{"partition_log_end_offset", "Offset the next record of a partition gets.",
		func(f *broker.PartitionFigures) int64 { return f.End }},
	{"partition_high_watermark", "Offset up to which consumers may read; -1 if it is not known.",
		func(f *broker.PartitionFigures) int64 { return f.HighWatermark }},
	{"partition_last_stable_offset", "Offset up to which read_committed consumers may read; -1 if it is not known.",
		func(f *broker.PartitionFigures) int64 { return f.LastStable }},
	{"partition_unflushed_records", "Offsets that a power cut could take back: from what was flushed to the log's end.",
		func(f *broker.PartitionFigures) int64 { return f.End - f.Durable }},
	{"partition_leader", "1 if this broker leads the partition and its log is well.", func(f *broker.PartitionFigures) int64 {
		if f.Leads && !f.Offline {
			return 1
		}
		return 0
	}},
}
