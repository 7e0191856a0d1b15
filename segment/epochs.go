package segment

import (
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"
)

// epochStart says that a leader epoch begins at start.
type epochStart struct {
	epoch int32
	start Offset
}

// epochs is the leader epoch cache: both fields rise strictly.
type epochs []epochStart

// assign notes that epoch begins at start and says whether that changed anything.
func (e *epochs) assign(epoch int32, start Offset) bool {
	list := *e
	if n := len(list); n > 0 && list[n-1].epoch == epoch && list[n-1].start <= start {
		return false
	}
	for len(list) > 0 && (list[len(list)-1].epoch >= epoch || list[len(list)-1].start >= start) {
		list = list[:len(list)-1]
	}
	*e = append(list, epochStart{epoch, start})
	return true
}

func (e epochs) latest() int32 {
	if len(e) == 0 {
		return noEpoch
	}
	return e[len(e)-1].epoch
}

// at is the epoch of offset o, noEpoch if unknown.
func (e epochs) at(o Offset) int32 {
	n := sort.Search(len(e), func(i int) bool { return e[i].start > o })
	if n == 0 {
		return noEpoch
	}
	return e[n-1].epoch
}

// end answers where epoch ended, in a log that ends at logEnd.
func (e epochs) end(epoch int32, logEnd Offset) EpochEnd {
	if epoch == noEpoch || len(e) == 0 || epoch > e.latest() {
		return EpochEnd{noEpoch, -1}
	}
	if epoch == e.latest() {
		return EpochEnd{epoch, logEnd}
	}
	n := sort.Search(len(e), func(i int) bool { return e[i].epoch > epoch })
	if n == 0 {
		return EpochEnd{epoch, e[0].start}
	}
	return EpochEnd{e[n-1].epoch, e[n].start}
}

// truncateEnd drops epochs that begin at or after o.
func (e *epochs) truncateEnd(o Offset) bool {
	n := sort.Search(len(*e), func(i int) bool { return (*e)[i].start >= o })
	changed := n < len(*e)
	*e = (*e)[:n]
	return changed
}

// truncateStart drops epochs before o; the one o lies in begins at o then.
func (e *epochs) truncateStart(o Offset) bool {
	n := sort.Search(len(*e), func(i int) bool { return (*e)[i].start > o })
	if n == 0 || n == 1 && (*e)[0].start == o {
		return false
	}
	*e = slices.Delete(*e, 0, n-1)
	(*e)[0].start = o
	return true
}

func (e epochs) encode() []byte {
	b := append([]byte("0\n"), strconv.Itoa(len(e))...)
	b = append(b, '\n')
	for _, x := range e {
		b = strconv.AppendInt(b, int64(x.epoch), 10)
		b = append(b, ' ')
		b = strconv.AppendInt(b, int64(x.start), 10)
		b = append(b, '\n')
	}
	return b
}

func decodeEpochs(b []byte) (epochs, error) {
	lines, err := checkpointLines(b)
	if err != nil {
		return nil, err
	}
	var e epochs
	for i, line := range lines {
		left, right, _ := strings.Cut(line, " ")
		epoch, err1 := strconv.ParseInt(left, 10, 32)
		start, err2 := strconv.ParseInt(right, 10, 64)
		if err1 != nil || err2 != nil || epoch < 0 || start < 0 {
			return nil, fmt.Errorf("%w: line %d is %.100q", ErrMalformed, i+3, line)
		}
		e.assign(int32(epoch), Offset(start)) // Kafka, too, reads entries as if they came one by one
	}
	return e, nil
}

// checkpointLines reads the frame all checkpoint files share: version 0, a count, that many lines. An empty file holds none.
func checkpointLines(b []byte) ([]string, error) {
	if len(b) == 0 {
		return nil, nil
	}
	lines := strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")
	for i := range lines {
		lines[i] = strings.TrimSuffix(lines[i], "\r")
	}
	if lines[0] != "0" {
		return nil, fmt.Errorf("%w: version %.20q", ErrMalformed, lines[0])
	}
	if len(lines) < 2 {
		return nil, fmt.Errorf("%w: no count", ErrMalformed)
	}
	n, err := strconv.ParseInt(lines[1], 10, 32)
	if err != nil || n < 0 || int(n) != len(lines)-2 {
		return nil, fmt.Errorf("%w: count %.20q with %d lines", ErrMalformed, lines[1], len(lines)-2)
	}
	return lines[2:], nil
}
