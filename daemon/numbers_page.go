package main

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"runtime"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/VictoriaMetrics/metrics"

	"kring/daemon/broker"
)

// page is one answer in the making. Names are Kafka's terms behind kring_; what is counted since the start ends in _total.
type page struct {
	out   *bytes.Buffer
	n     *numbers
	loops []*loopCopy // nil before the broker serves
	name  string      // of the family being written

	number [32]byte
}

// gauge and counter begin a family; its samples follow.
func (p *page) gauge(name, help string)   { p.begin(name, "gauge", help) }
func (p *page) counter(name, help string) { p.begin(name, "counter", help) }

func (p *page) begin(name, kind, help string) {
	p.name = "kring_" + name
	fmt.Fprintf(p.out, "# HELP %s %s\n# TYPE %s %s\n", p.name, help, p.name, kind)
}

// is writes one sample of the family, labelled by pairs of name and value.
func (p *page) is(v uint64, labels ...string) { p.whole(int64(v), labelled(labels)) }

// whole is is with labels made already; an offset that is not known is -1.
func (p *page) whole(v int64, labels string) {
	p.line(labels, strconv.AppendInt(p.number[:0], v, 10))
}

func (p *page) float(v float64, labels ...string) {
	p.line(labelled(labels), strconv.AppendFloat(p.number[:0], v, 'g', -1, 64))
}

func (p *page) line(labels string, number []byte) {
	p.out.WriteString(p.name)
	p.out.WriteString(labels)
	p.out.WriteByte(' ')
	p.out.Write(number)
	p.out.WriteByte('\n')
}

func (p *page) flag(v bool, labels ...string) {
	if v {
		p.is(1, labels...)
	} else {
		p.is(0, labels...)
	}
}

var labelEscapes = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

// labelled makes {name="value",...} of pairs.
func labelled(pairs []string) string {
	if len(pairs) == 0 {
		return ""
	}
	b := make([]byte, 0, 64)
	for i := 0; i < len(pairs); i += 2 {
		if b = append(b, ','); i == 0 {
			b[0] = '{'
		}
		b = append(append(b, pairs[i]...), '=', '"')
		b = append(append(b, labelEscapes.Replace(readable(pairs[i+1]))...), '"')
	}
	return string(append(b, '}'))
}

// readable is a name in UTF-8, as the format wants it. Bytes that are none are written \xNN, so that two names never become one.
func readable(name string) string {
	if utf8.ValidString(name) && !strings.Contains(name, `\x`) {
		return name
	}
	var b strings.Builder
	for i := 0; i < len(name); {
		r, n := utf8.DecodeRuneInString(name[i:])
		if r == utf8.RuneError && n == 1 || strings.HasPrefix(name[i:], `\x`) {
			fmt.Fprintf(&b, `\x%02x`, name[i])
		} else {
			b.WriteString(name[i : i+n])
		}
		i += n
	}
	return b.String()
}

// write is the whole answer.
func (p *page) write() {
	p.state()
	p.recovery()
	if p.loops != nil {
		p.requests()
		p.connections()
		p.traffic()
		p.partitions()
		p.cleaner()
		p.rings()
	}
	p.process()
}

func (p *page) state() {
	p.gauge("build_info", "Always 1; the labels say what runs.")
	p.is(1, "version", version, "go", runtime.Version())
	now, _ := p.n.life.now()
	p.gauge("broker_state", "1 for the state the broker is in, 0 for the others.")
	for s := isStarting; s <= isStopping; s++ {
		p.flag(s == now, "state", s.String())
	}
	if b := p.n.life.broker.Load(); b != nil {
		p.gauge("broker_info", "Always 1; the labels say which broker this is.")
		p.is(1, "broker_id", strconv.Itoa(int(b.Node().ID)), "cluster_id", b.Node().ClusterID)
	} else if stage := p.n.life.stage.Load(); stage != nil && stage.Total > 0 {
		p.gauge("start_logs", "Logs to be loaded before the broker serves.")
		p.is(uint64(stage.Total))
		p.gauge("start_logs_loaded", "Logs that are loaded.")
		p.is(uint64(stage.Done))
	}
	p.counter("log_lines_total", "Lines of the broker's own log, by level.")
	for i, level := range []string{"debug", "info", "warn", "error"} {
		p.is(p.n.log.counts[i].Load(), "level", level)
	}
	p.counter("log_lines_dropped_total", "Lines that were lost because nobody read the log in time.")
	p.is(p.n.log.queue.droppedAll.Load())
}

// rings is what is to know of each loop and its ring.
func (p *page) rings() {
	each := func(of func(*broker.Figures) uint64) {
		for i, c := range p.loops {
			p.is(of(c.good), "loop", strconv.Itoa(i))
		}
	}
	p.gauge("loop_turning", "1 if the loop has turned while this was gathered; 0 if its numbers are older ones.")
	for i, c := range p.loops {
		p.flag(!c.late, "loop", strconv.Itoa(i))
	}
	p.counter("loop_cpu_seconds_total", "Processor time of the loop's thread.")
	for i, id := range p.n.kernel.Threads() {
		if seconds, ok := threadTime(id); ok {
			p.float(seconds, "loop", strconv.Itoa(i))
		}
	}
	for _, f := range ringFamilies {
		kind := "gauge"
		if strings.HasSuffix(f.name, "_total") {
			kind = "counter"
		}
		p.begin(f.name, kind, f.help)
		each(f.of)
	}
	p.counter("ring_writes_total", "Writes to logs, by path: completed by the loop's own call, or sent by the ring.")
	for i, c := range p.loops {
		s := &c.good.Ring
		p.is(s.Writes-s.RingWrites, "loop", strconv.Itoa(i), "path", "call")
		p.is(s.RingWrites, "loop", strconv.Itoa(i), "path", "ring")
	}
	p.gauge("ring_slowest_write_seconds", "The longest that a write has held up the loop since the start.")
	for i, c := range p.loops {
		p.float(c.good.Ring.SlowestWrite.Seconds(), "loop", strconv.Itoa(i))
	}
	p.gauge("ring_kernel_workers", "The kernel's worker threads for this process' rings, now.")
	p.is(uint64(kernelWorkers()))
}

// process is what Go's runtime and the kernel say of the process. The library gives each family a HELP line without words, which
// is left out.
func (p *page) process() {
	var b bytes.Buffer
	metrics.ExposeMetadata(true)
	metrics.WriteProcessMetrics(&b)
	metrics.WriteFDMetrics(&b)
	metrics.ExposeMetadata(false)
	for {
		line, err := b.ReadBytes('\n')
		if err == io.EOF {
			return
		}
		if !bytes.HasPrefix(line, []byte("# HELP ")) {
			p.out.Write(line)
		}
	}
}

// seconds is the upper bound of a bucket as le wants it.
func seconds(f float64) string {
	if math.IsInf(f, 1) {
		return "+Inf"
	}
	return strconv.FormatFloat(f, 'f', -1, 64)
}
