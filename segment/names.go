package segment

import (
	"strconv"
	"strings"
)

// Suffixes of the files in a partition's directory.
const (
	logSuffix      = ".log"
	indexSuffix    = ".index"
	timeSuffix     = ".timeindex"
	txnSuffix      = ".txnindex"
	snapshotSuffix = ".snapshot"
	deletedSuffix  = ".deleted"
	cleanedSuffix  = ".cleaned"
	swapSuffix     = ".swap"
	tmpSuffix      = ".tmp"
	// damagedSuffix is that of bytes which a start or a repair took out of a log; no broker looks at such a file.
	damagedSuffix = ".damaged"

	epochsFile   = "leader-epoch-checkpoint"
	metadataFile = "partition.metadata"
)

// offsetDigits is how many digits a file's name begins with.
const offsetDigits = 20

// fileName is base in 20 digits, with a suffix.
func fileName(base Offset, suffix string) string {
	s := strconv.FormatInt(int64(base), 10)
	return "00000000000000000000"[:20-len(s)] + s + suffix
}

// parseName splits a file name into its offset and suffix; false if it is no such name.
func parseName(name string) (Offset, string, bool) {
	dot := strings.IndexByte(name, '.')
	if dot != offsetDigits {
		return 0, "", false // "7.log" would not be found again
	}
	n, err := strconv.ParseUint(name[:dot], 10, 63)
	if err != nil {
		return 0, "", false
	}
	return Offset(n), name[dot:], true
}

// isOurs tells the names of files that a log is read from.
func isOurs(name string) bool {
	_, suffix, ok := parseName(name)
	switch suffix {
	case logSuffix, indexSuffix, timeSuffix, txnSuffix, snapshotSuffix:
		return ok
	}
	return name == epochsFile || name == metadataFile
}

// parsePartition splits "<topic>-<partition>"; false if name is no such thing.
func parsePartition(name string) (Partition, bool) {
	dash := strings.LastIndexByte(name, '-')
	if dash <= 0 || dash == len(name)-1 || !validTopic(name[:dash]) {
		return Partition{}, false
	}
	n, err := strconv.ParseUint(name[dash+1:], 10, 31)
	if err != nil {
		return Partition{}, false
	}
	return Partition{Topic: name[:dash], Index: int32(n)}, true
}

// parseMarked splits "<topic>-<partition>.<32 hex digits>-<mark>".
func parseMarked(name, mark string) (Partition, bool) {
	rest, ok := strings.CutSuffix(name, "-"+mark)
	if !ok {
		return Partition{}, false
	}
	dot := strings.LastIndexByte(rest, '.')
	if dot < 0 || len(rest)-dot-1 != 32 || strings.Trim(rest[dot+1:], "0123456789abcdef") != "" {
		return Partition{}, false
	}
	return parsePartition(rest[:dot])
}

func validTopic(s string) bool {
	if s == "" || s == "." || s == ".." || len(s) > 249 {
		return false
	}
	for _, c := range []byte(s) {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '.', c == '_', c == '-':
		default:
			return false
		}
	}
	return true
}

// String is "<topic>-<partition>", the name of its directory.
func (p Partition) String() string { return p.Topic + "-" + strconv.Itoa(int(p.Index)) }

// less orders partitions by topic, then index.
func (p Partition) compare(q Partition) int {
	if c := strings.Compare(p.Topic, q.Topic); c != 0 {
		return c
	}
	return int(p.Index) - int(q.Index)
}

// deletedName is the name a removed partition's directory gets; at most 255 bytes long.
func deletedName(p string, uuid [16]byte) string {
	const hex = "0123456789abcdef"
	tail := make([]byte, 0, 40)
	tail = append(tail, '.')
	for _, b := range uuid {
		tail = append(tail, hex[b>>4], hex[b&15])
	}
	tail = append(tail, "-delete"...)
	part, _ := parsePartition(p)
	index := "-" + strconv.Itoa(int(part.Index))
	topic := part.Topic
	if over := len(topic) + len(index) + len(tail) - 255; over > 0 {
		topic = topic[:len(topic)-over]
	}
	return topic + index + string(tail)
}
