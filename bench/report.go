package bench

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Latency is a distribution in milliseconds.
type Latency struct {
	P50  float64 `json:"p50"`
	P99  float64 `json:"p99"`
	P999 float64 `json:"p99_9"`
	Max  float64 `json:"max"`
}

// Report is what a run found. CPU figures are the broker's alone and 0 when no process was named.
type Report struct {
	Load       string  `json:"load"`
	Requests   int64   `json:"requests"`
	Bytes      int64   `json:"bytes"` // record values (consume, compact: record batches)
	Seconds    float64 `json:"seconds"`
	PerSecond  float64 `json:"requests_per_second"`
	MBPerSec   float64 `json:"mb_per_second"` // 10^6
	Ack        Latency `json:"ack_ms"`
	EndToEnd   Latency `json:"end_to_end_ms"`
	CPUPerM    float64 `json:"cpu_seconds_per_million_requests"`
	CPUPerGB   float64 `json:"cpu_seconds_per_gb"` // 10^9
	SystemPart float64 `json:"cpu_system_part"`    // of the CPU, 0 to 1
	Cores      float64 `json:"cpu_cores"`
	ResidentMB float64 `json:"resident_mb"` // 2^20, at the end
	PeakMB     float64 `json:"peak_mb"`
	// Of Commits alone: offsets that were committed, and the size of the offsets topic after the broker has cleaned it, 10^6.
	Offsets       int64   `json:"offsets,omitempty"`
	OffsetsPerSec float64 `json:"offsets_per_second,omitempty"`
	OffsetsMB     float64 `json:"offsets_topic_mb,omitempty"`
	// LeftMB is what Compact has left of the topic, 10^6.
	LeftMB float64 `json:"left_mb,omitempty"`
}

// meter measures a stretch of a run.
type meter struct {
	o      *Options
	before usage
	start  time.Time
}

func (o *Options) meter() (*meter, error) {
	u, err := account(o.PIDs)
	return &meter{o: o, before: u, start: time.Now()}, err
}

func (m *meter) report(load string) (*Report, error) {
	seconds := time.Since(m.start).Seconds()
	after, err := account(m.o.PIDs)
	if err != nil {
		return nil, err
	}
	r := &Report{Load: load, Seconds: seconds}
	cpu := (after.cpu - m.before.cpu).Seconds()
	user, system := (after.user - m.before.user).Seconds(), (after.system - m.before.system).Seconds()
	if user+system > 0 {
		r.SystemPart = system / (user + system)
	}
	r.Cores = cpu / seconds
	r.ResidentMB, r.PeakMB = float64(after.resident)/(1<<20), float64(after.peak)/(1<<20)
	return r, nil
}

// Memory reports what the broker's processes hold now.
func Memory(o Options) (*Report, error) {
	m, err := o.meter()
	if err != nil {
		return nil, err
	}
	return m.report("memory")
}

// count fills in what depends on how much was done.
func (r *Report) count(requests, bytes int64) {
	cpu := r.Cores * r.Seconds
	r.Requests, r.Bytes = requests, bytes
	r.PerSecond = float64(requests) / r.Seconds
	r.MBPerSec = float64(bytes) / 1e6 / r.Seconds
	if requests > 0 {
		r.CPUPerM = cpu / float64(requests) * 1e6
	}
	if bytes > 0 {
		r.CPUPerGB = cpu / float64(bytes) * 1e9
	}
}

// histogram holds microseconds up to a minute with three digits.
func histogram() *hdrhistogram.Histogram {
	return hdrhistogram.New(1, int64(time.Minute/time.Microsecond), 3)
}

func note(h *hdrhistogram.Histogram, d time.Duration) {
	h.RecordValue(min(max(d.Microseconds(), 1), h.HighestTrackableValue()))
}

func latency(h *hdrhistogram.Histogram) Latency {
	ms := func(q float64) float64 { return float64(h.ValueAtQuantile(q)) / 1000 }
	return Latency{P50: ms(50), P99: ms(99), P999: ms(99.9), Max: float64(h.Max()) / 1000}
}

// WriteText prints the report for people.
func (r *Report) WriteText(w io.Writer) {
	fmt.Fprintf(w, "%-22s %d requests in %.1f s: %.0f/s, %.1f MB/s\n", r.Load+":", r.Requests, r.Seconds, r.PerSecond, r.MBPerSec)
	line := func(name string, l Latency) {
		if l.Max > 0 {
			fmt.Fprintf(w, "%-22s p50 %.3f  p99 %.3f  p99.9 %.3f  max %.3f ms\n", "  "+name+":", l.P50, l.P99, l.P999, l.Max)
		}
	}
	if r.Offsets > 0 {
		fmt.Fprintf(w, "%-22s %d committed, %.0f/s; their topic takes %.1f MB\n", "  offsets:", r.Offsets, r.OffsetsPerSec, r.OffsetsMB)
	}
	if r.LeftMB > 0 {
		fmt.Fprintf(w, "%-22s %.1f MB of %.1f\n", "  left:", r.LeftMB, float64(r.Bytes)/1e6)
	}
	line("answer", r.Ack)
	line("end to end", r.EndToEnd)
	if r.Cores > 0 {
		fmt.Fprintf(w, "%-22s %.1f CPU-s per million requests, %.2f per GB (%.0f %% in the kernel), %.2f cores, %.0f MB resident (peak %.0f)\n",
			"  broker:", r.CPUPerM, r.CPUPerGB, 100*r.SystemPart, r.Cores, r.ResidentMB, r.PeakMB)
	}
}

// WriteJSON prints it for programs, one line.
func (r *Report) WriteJSON(w io.Writer) error { return json.NewEncoder(w).Encode(r) }
