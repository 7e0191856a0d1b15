package segment

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"kring/ring"
)

const smallFileMax = 16 << 20

// String is Kafka's form of a topic id: 22 characters of URL-safe base64.
func (id TopicID) String() string { return base64.RawURLEncoding.EncodeToString(id[:]) }

// ParseTopicID reads that form.
func ParseTopicID(s string) (TopicID, error) {
	var id TopicID
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil || len(b) != len(id) {
		return id, fmt.Errorf("%w: topic id %.60q", ErrMalformed, s)
	}
	copy(id[:], b)
	return id, nil
}

// decodeMetadata reads partition.metadata.
func decodeMetadata(b []byte) (TopicID, error) {
	var id TopicID
	version, seen := "", false
	for line := range strings.Lines(string(b)) {
		key, value, ok := strings.Cut(strings.TrimRight(line, "\r\n"), ":")
		if !ok {
			continue
		}
		value = strings.TrimSpace(value)
		switch strings.TrimSpace(key) {
		case "version":
			version = value
		case "topic_id":
			var err error
			if id, err = ParseTopicID(value); err != nil {
				return id, err
			}
			seen = true
		}
	}
	if version != "0" || !seen || id == (TopicID{}) {
		return id, fmt.Errorf("%w: version %.20q, topic id %v", ErrMalformed, version, id)
	}
	return id, nil
}

func encodeMetadata(id TopicID) []byte { return []byte("version: 0\ntopic_id: " + id.String()) }

func (l *Log) loadTopicID(t *ring.Task, want TopicID, f *found) error {
	if _, ok := f.sizes[metadataFile]; ok {
		path := l.dir + "/" + metadataFile
		b, err := t.ReadFile(path, smallFileMax)
		if err != nil {
			return err
		}
		if l.id, err = decodeMetadata(b); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	if want == (TopicID{}) {
		return nil
	}
	return l.SetTopicID(t, want)
}

// SetTopicID writes partition.metadata if there is none; ErrTopicID if it says otherwise.
func (l *Log) SetTopicID(t *ring.Task, id TopicID) error {
	switch {
	case id == l.id || id == TopicID{}:
		return nil
	case l.id != TopicID{}:
		return fmt.Errorf("%s: %w: %v, not %v", l.dir, ErrTopicID, l.id, id)
	}
	if err := t.WriteFile(l.dir, metadataFile, encodeMetadata(id)); err != nil {
		return err
	}
	l.id = id
	return nil
}

// loadEpochs reads the leader epoch cache; a file that cannot be read is rebuilt from the batches.
func (l *Log) loadEpochs(t *ring.Task, recollect bool) (lost bool, err error) {
	if recollect {
		l.epochsNew = true
		return true, nil
	}
	b, err := t.ReadFile(l.dir+"/"+epochsFile, smallFileMax)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err == nil {
		l.epochs, err = decodeEpochs(b)
	}
	if err != nil && unreadable(err) {
		l.warn("the leader epochs cannot be read; collecting them from the batches", "cause", err)
		l.epochsNew = true
		return true, nil
	}
	return false, err
}

// AssignEpoch notes that leader epoch begins at the end of the log (a new leader does so, with or without records).
func (l *Log) AssignEpoch(epoch int32) {
	if epoch >= 0 && l.refusal() == nil {
		l.assignEpoch(epoch, l.end)
	}
}

func (l *Log) assignEpoch(epoch int32, start Offset) {
	if l.epochs.assign(epoch, start) {
		l.epochsNew = true
		l.saveEpochs()
	}
}

// savesMost is how many logs of a loop write their leader epochs at a time: after a start all of them have a new one.
const savesMost = 16

// saveEpochs writes the leader epoch cache behind; changes that come meanwhile follow.
func (l *Log) saveEpochs() {
	if !l.epochsNew || l.epochsBusy || l.failed != nil || l.closed {
		return
	}
	l.epochsBusy = true
	f := l.files
	if f.unsaved = append(f.unsaved, l); f.saving == savesMost {
		return
	}
	f.saving++
	ring.Go(l.loop, func(t *ring.Task) {
		for len(f.unsaved) > 0 {
			next := f.unsaved[0]
			f.unsaved = f.unsaved[1:]
			next.writeEpochs(t)
		}
		f.saving--
	})
}

func (l *Log) writeEpochs(t *ring.Task) {
	var err error
	for err == nil && l.epochsNew && l.failed == nil && !l.closed {
		l.epochsNew = false
		err = t.WriteFile(l.dir, epochsFile, l.epochs.encode())
	}
	l.epochsNew = l.epochsNew || err != nil
	l.epochsBusy = false
	l.notify()
	switch {
	case err == nil:
	case ring.NoSpace(err), ring.NoDescriptors(err):
		l.noRoom("writing leader epochs", 0, err) // the next change or the stop tries again
	default:
		l.fail("writing leader epochs", err)
	}
}

// LatestEpoch is the last leader epoch known, -1 for none.
func (l *Log) LatestEpoch() int32 { return l.epochs.latest() }

// EpochAt is the leader epoch of the record at o, -1 if unknown.
func (l *Log) EpochAt(o Offset) int32 { return l.epochs.at(o) }

// EndOffsetForEpoch answers OffsetsForLeaderEpoch.
func (l *Log) EndOffsetForEpoch(epoch int32) EpochEnd { return l.epochs.end(epoch, l.end) }
