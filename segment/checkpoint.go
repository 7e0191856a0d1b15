package segment

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"kring/ring"
)

// Checkpoint files of a log dir, Kafka's.
const (
	recoveryFile  = "recovery-point-offset-checkpoint"
	logStartFile  = "log-start-offset-checkpoint"
	watermarkFile = "replication-offset-checkpoint"
	cleanerFile   = "cleaner-offset-checkpoint"
)

var checkpointFiles = []string{recoveryFile, logStartFile, watermarkFile, cleanerFile}

// checkpointMax is what a million partitions with the longest names need.
const checkpointMax = 300 << 20

// Checkpoint is a line of a checkpoint file.
type Checkpoint struct {
	Partition
	Offset Offset
}

// encodeCheckpoints gives a checkpoint file's bytes, sorted.
func encodeCheckpoints(all []Checkpoint) []byte {
	all = slices.Clone(all)
	slices.SortFunc(all, func(a, b Checkpoint) int { return a.Partition.compare(b.Partition) })
	b := append([]byte("0\n"), strconv.Itoa(len(all))...)
	b = append(b, '\n')
	for _, c := range all {
		b = append(b, c.Topic...)
		b = append(b, ' ')
		b = strconv.AppendInt(b, int64(c.Index), 10)
		b = append(b, ' ')
		b = strconv.AppendInt(b, int64(c.Offset), 10)
		b = append(b, '\n')
	}
	return b
}

// decodeCheckpoints reads a checkpoint file.
func decodeCheckpoints(b []byte) (map[Partition]Offset, error) {
	lines, err := checkpointLines(b)
	if err != nil {
		return nil, err
	}
	all := make(map[Partition]Offset, len(lines))
	for i, line := range lines {
		fields := strings.Fields(line)
		if len(fields) != 3 {
			return nil, fmt.Errorf("%w: line %d is %.300q", ErrMalformed, i+3, line)
		}
		index, err1 := strconv.ParseInt(fields[1], 10, 32)
		o, err2 := strconv.ParseInt(fields[2], 10, 64)
		if err1 != nil || err2 != nil || index < 0 || o < 0 {
			return nil, fmt.Errorf("%w: line %d is %.300q", ErrMalformed, i+3, line)
		}
		all[Partition{Topic: fields[0], Index: int32(index)}] = Offset(o)
	}
	return all, nil
}

func (d *Dir) writeCheckpoints(t *ring.Task, name string, all []Checkpoint) error {
	if err := t.WriteFile(d.path, name, encodeCheckpoints(all)); err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	return nil
}

// WriteRecoveryPoints writes recovery-point-offset-checkpoint: Log.RecoveryPoint of every log.
func (d *Dir) WriteRecoveryPoints(t *ring.Task, all []Checkpoint) error {
	return d.writeCheckpoints(t, recoveryFile, all)
}

// WriteCleaned writes cleaner-offset-checkpoint: those of Log.Cleaned.
func (d *Dir) WriteCleaned(t *ring.Task, all []Checkpoint) error {
	return d.writeCheckpoints(t, cleanerFile, all)
}

// WriteLogStarts writes log-start-offset-checkpoint: those of Log.StartCheckpoint.
func (d *Dir) WriteLogStarts(t *ring.Task, all []Checkpoint) error {
	return d.writeCheckpoints(t, logStartFile, all)
}

// WriteHighWatermarks writes replication-offset-checkpoint. Before every partition's high watermark is known it must not be
// called: what it leaves out begins at 0 after the next start.
func (d *Dir) WriteHighWatermarks(t *ring.Task, all []Checkpoint) error {
	return d.writeCheckpoints(t, watermarkFile, all)
}
