package main

import (
	"math"
	"sort"
	"strconv"
	"time"

	"kring/daemon/broker"
)

// stats is what `kring stats` shows: totals since the broker's start and, where an interval was watched, rates in it.
type stats struct {
	Broker   *int32       `json:"broker"` // null before it serves
	Cluster  string       `json:"cluster,omitempty"`
	Version  string       `json:"version"`
	State    string       `json:"state"`
	Uptime   float64      `json:"uptimeSeconds"`
	Start    *startStats  `json:"start,omitempty"` // while logs are loaded
	Interval float64      `json:"intervalSeconds"` // 0: no rates
	Process  processStats `json:"process"`
	Traffic  []rate       `json:"traffic"`
	Logs     []gauge      `json:"logs"`
	NoRoom   *noRoomStats `json:"noRoom,omitempty"`
	Groups   []gauge      `json:"groups"`
	Cleaner  []gauge      `json:"cleaner"`
	APIs     []apiStats   `json:"apis"`
	Closed   []rate       `json:"connectionsClosed"`
	Loops    []loopStats  `json:"loops"`
	Lags     []lagStats   `json:"groupLags"`
	now, old *numbersRead
	interval time.Duration
}

// startStats is how far the loading of the logs is, before the broker serves.
type startStats struct {
	Logs    float64 `json:"logs"`
	Loaded  float64 `json:"logsLoaded"`
	Unclean bool    `json:"unclean"` // the last stop was not clean, so that logs are recovered
	Bytes   float64 `json:"bytesChecked"`
	Seconds float64 `json:"seconds"`
}

// text is it as the broker's health has it.
func (s *startStats) text() string {
	doing := "loading logs"
	if s.Unclean {
		doing = "recovering logs"
	}
	return stageText(broker.Stage{Doing: doing, Done: int(s.Loaded), Total: int(s.Logs),
		Recovery: &broker.Recovery{Bytes: int64(s.Bytes), Took: time.Duration(s.Seconds * float64(time.Second))}})
}

// rate is something that is counted; gauge something that is measured.
type rate struct {
	Name  string  `json:"name"`
	Total float64 `json:"total"`
	Rate  float64 `json:"perSecond"`
}

type gauge struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
}

type processStats struct {
	CPU      float64 `json:"cpuCores"` // in the interval, else since the start
	Resident float64 `json:"residentBytes"`
	Heap     float64 `json:"heapBytes"`
	Files    float64 `json:"openFiles"`
	FilesMax float64 `json:"openFilesMax"`
}

// apiStats is one API. Times are estimates from the histogram's buckets, of the interval if there was one and something in it.
type apiStats struct {
	API           string  `json:"api"`
	Requests      float64 `json:"requests"`
	Rate          float64 `json:"perSecond"`
	Errors        []rate  `json:"errors"`
	P50           float64 `json:"p50Seconds"`
	P99           float64 `json:"p99Seconds"`
	RequestBytes  float64 `json:"requestBytes"`
	ResponseBytes float64 `json:"responseBytes"`
}

// loopStats is one loop and its ring. CPU is a share of one processor.
type loopStats struct {
	Loop        string  `json:"loop"`
	Turning     bool    `json:"turning"`
	CPU         float64 `json:"cpuCores"`
	Connections float64 `json:"connections"`
	InFlight    float64 `json:"requestsInFlight"`
	Turns       rate    `json:"turns"`
	Enters      rate    `json:"enters"`
	Submissions rate    `json:"submissions"`
	Completions rate    `json:"completions"`
	HandOffs    rate    `json:"handOffs"`
	CallWrites  rate    `json:"writesByCall"`
	RingWrites  rate    `json:"writesByRing"`
	SlowWrites  rate    `json:"slowWrites"`
	NoBuffers   rate    `json:"noBuffers"`
	Buffers     float64 `json:"bufferBytesLent"`
}

// noRoomStats are log dirs that had no room lately, and the partitions that are offline for it.
type noRoomStats struct {
	LogDirs    float64 `json:"logDirs"`
	Partitions float64 `json:"partitions"`
}

// lagStats is one group's distance from the end, over all its partitions.
type lagStats struct {
	Group      string  `json:"group"`
	Partitions int     `json:"partitions"`
	Lag        float64 `json:"lag"`
	MaxLag     float64 `json:"maxLag"`
}

func newStats(now, old *numbersRead, interval time.Duration) *stats {
	s := &stats{now: now, old: old, interval: interval, Interval: interval.Seconds()}
	for _, b := range now.samples("broker_info") {
		if id, err := strconv.ParseInt(b.label("broker_id"), 10, 32); err == nil {
			n := int32(id)
			s.Broker, s.Cluster = &n, b.label("cluster_id")
		}
	}
	if now.samples("start_logs") != nil {
		s.Start = &startStats{Logs: now.sum("start_logs"), Loaded: now.sum("start_logs_loaded"), Unclean: now.sum("recovery_unclean") > 0,
			Bytes: now.sum("recovery_bytes_total"), Seconds: now.sum("recovery_seconds")}
	}
	for _, b := range now.samples("build_info") {
		s.Version = b.label("version")
	}
	for _, b := range now.samples("broker_state") {
		if b.value == 1 {
			s.State = b.label("state")
		}
	}
	s.process()
	s.Traffic = []rate{s.rate("bytes in", "bytes_in_total"), s.rate("messages in", "messages_in_total"),
		s.rate("bytes out", "bytes_out_total")}
	if dirs := now.sum("log_dirs_without_room"); dirs > 0 {
		s.NoRoom = &noRoomStats{dirs, now.sum("partitions_without_room")}
	}
	s.Logs = s.gauges("partitions", "partitions", "led here", "leader_partitions", "offline", "offline_partitions",
		"under min.insync.replicas", "under_min_isr_partitions", "segments", "log_segments", "bytes", "log_size_bytes",
		"open files", "log_open_files")
	s.Cleaner = s.gauges("running", "cleaner_running", "cleanings", "cleaner_cleanings_total", "cleanable bytes", "cleaner_cleanable_bytes",
		"uncleanable partitions", "cleaner_uncleanable_partitions")
	for _, g := range now.samples("groups") {
		s.Groups = append(s.Groups, gauge{g.label("state"), g.value})
	}
	s.Groups = append(s.Groups, s.gauges("offsets", "group_offsets", "rebalances", "group_rebalances_total",
		"commits", "group_offset_commits_total")...)
	s.apis()
	for _, c := range now.samples("connections_closed_total") {
		if c.value > 0 {
			s.Closed = append(s.Closed, s.rate(c.label("reason"), "connections_closed_total", "reason", c.label("reason")))
		}
	}
	s.loops()
	s.lags()
	return s
}

// rate is a counter's sum over the samples with these labels.
func (s *stats) rate(name, family string, labels ...string) rate {
	r := rate{Name: name, Total: s.now.sum(family, labels...)}
	if s.old != nil {
		r.Rate = max(r.Total-s.old.sum(family, labels...), 0) / s.Interval // a broker that was started anew begins at 0
	}
	return r
}

func (s *stats) gauges(pairs ...string) []gauge {
	var all []gauge
	for i := 0; i < len(pairs); i += 2 {
		all = append(all, gauge{pairs[i], s.now.sum(pairs[i+1])})
	}
	return all
}

// process reads what the library says of the process, whose names are not ours.
func (s *stats) process() {
	of := func(n *numbersRead, name string) float64 {
		if n == nil || n.families[name] == nil || len(n.families[name].samples) == 0 {
			return 0
		}
		return n.families[name].samples[0].value
	}
	s.Uptime = math.Round(float64(time.Now().Unix()) - of(s.now, "process_start_time_seconds"))
	over := s.Uptime
	cpu := of(s.now, "process_cpu_seconds_total")
	if s.old != nil {
		cpu, over = cpu-of(s.old, "process_cpu_seconds_total"), s.Interval
	}
	s.Process = processStats{CPU: cpu / max(over, 1e-3), Resident: of(s.now, "process_resident_memory_bytes"),
		Heap: of(s.now, "go_memstats_heap_inuse_bytes"), Files: of(s.now, "process_open_fds"), FilesMax: of(s.now, "process_max_fds")}
}

func (s *stats) apis() {
	times := map[string]*histogram{}
	if f := s.now.families["kring_request_duration_seconds"]; f != nil {
		for _, h := range f.histograms() {
			times[h.labels] = h
		}
	}
	if s.old != nil && s.old.families["kring_request_duration_seconds"] != nil {
		for _, h := range s.old.families["kring_request_duration_seconds"].histograms() {
			if now := times[h.labels]; now != nil && now.count > h.count && len(now.counts) == len(h.counts) {
				now.minus(h)
			}
		}
	}
	for _, r := range s.now.samples("requests_total") {
		api := r.label("api")
		all := s.rate(api, "requests_total", "api", api)
		a := apiStats{API: api, Requests: all.Total, Rate: all.Rate, Errors: []rate{}, RequestBytes: s.now.sum("request_bytes_total", "api", api),
			ResponseBytes: s.now.sum("response_bytes_total", "api", api)}
		if h := times["api="+api+" "]; h != nil && h.count > 0 {
			a.P50, a.P99 = h.quantile(0.5), h.quantile(0.99)
		}
		for _, e := range s.now.samples("request_errors_total") {
			// A client that begins with a later ApiVersions than there is, and is told so, is no error.
			if e.label("api") == api && !(api == "ApiVersions" && e.label("error") == "UNSUPPORTED_VERSION") {
				a.Errors = append(a.Errors, s.rate(e.label("error"), "request_errors_total", "api", api, "error", e.label("error")))
			}
		}
		s.APIs = append(s.APIs, a)
	}
	sort.SliceStable(s.APIs, func(i, j int) bool { return s.APIs[i].Requests > s.APIs[j].Requests })
}

// minus leaves what came after an earlier state of the same histogram.
func (h *histogram) minus(old *histogram) {
	for i := range h.counts {
		h.counts[i] -= old.counts[i]
	}
	h.count -= old.count
	h.sum -= old.sum
}

func (s *stats) loops() {
	for _, t := range s.now.samples("loop_turning") {
		id := t.label("loop")
		of := func(family string, more ...string) rate {
			return s.rate(family, family, append([]string{"loop", id}, more...)...)
		}
		cpu := of("loop_cpu_seconds_total")
		l := loopStats{Loop: id, Turning: t.value == 1, CPU: cpu.Rate, Connections: s.now.sum("connections", "loop", id),
			InFlight: s.now.sum("requests_in_flight", "loop", id), Turns: of("loop_turns_total"), Enters: of("ring_enters_total"),
			Submissions: of("ring_submissions_total"), Completions: of("ring_completions_total"), HandOffs: of("ring_hand_offs_total"),
			CallWrites: of("ring_writes_total", "path", "call"), RingWrites: of("ring_writes_total", "path", "ring"),
			SlowWrites: of("ring_slow_writes_total"), NoBuffers: of("ring_no_buffers_total"),
			Buffers: s.now.sum("ring_buffer_lent_bytes", "loop", id)}
		if s.old == nil {
			l.CPU = cpu.Total / max(s.Uptime, 1)
		}
		s.Loops = append(s.Loops, l)
	}
}

func (s *stats) lags() {
	at := map[string]int{}
	for _, g := range s.now.samples("group_lag") {
		name := g.label("group")
		i, known := at[name]
		if !known {
			i = len(s.Lags)
			at[name] = i
			s.Lags = append(s.Lags, lagStats{Group: name})
		}
		l := &s.Lags[i]
		l.Partitions++
		l.Lag += g.value
		l.MaxLag = max(l.MaxLag, g.value)
	}
	sort.SliceStable(s.Lags, func(i, j int) bool { return s.Lags[i].Lag > s.Lags[j].Lag })
}
