package embedded

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"

	"kring/ring"
)

// What follows the last whole frame of the last log is a torn write, which was never answered, or damage. A torn write is a beginning of
// one frame, of which sectors may be lacking, and only a stop that was not clean can leave one. Damage with a whole frame behind it is
// refused; damage up to the end is kept beside the log, and told of, before it is cut off.

const (
	damagedSuffix = ".damaged"
	// asideMost is how many files of damaged bytes from one place are kept.
	asideMost = 100
	// sector is what a disk writes whole or not at all.
	sector = 512
	// searchMost bounds, beside some lengths of the log, how many bytes are summed in search of a whole frame.
	searchMost = 64 << 20
)

var errSearch = errors.New("it holds too many marks of frames to look behind them all")

// laterFrame finds a whole frame at or behind from: what stands before it had been made durable. -1 if there is none.
func laterFrame(b []byte, from int) (int, error) {
	var mark [4]byte
	binary.BigEndian.PutUint32(mark[:], frameMark)
	left := searchMost + 8*len(b)
	for at := from; at+frameHead <= len(b); at++ {
		next := bytes.Index(b[at:len(b)-frameHead+4], mark[:])
		if next < 0 {
			break
		}
		at += next
		if n := int(binary.BigEndian.Uint32(b[at+4:])); n <= len(b)-at-frameHead {
			if left -= n; left < 0 {
				return -1, errSearch
			}
		}
		if _, _, err := readFrame(b[at:], int64(at)); err == nil {
			return at, nil
		}
	}
	return -1, nil
}

// torn says whether a power cut explains rest, which follows the last whole frame of a log and stands at byte at of it.
func torn(rest []byte, at int64) bool {
	zeros := len(rest) - len(bytes.TrimLeft(rest, "\x00"))
	switch {
	case zeros == len(rest):
		return true
	case zeros > 0: // the sector in which the frame begins was not written, others were
		return (at+int64(zeros))/sector > at/sector && !bytes.Contains(rest, binary.BigEndian.AppendUint32(nil, frameMark))
	}
	mark := binary.BigEndian.AppendUint32(nil, frameMark)
	first := min(sector-int(at%sector), len(rest)) // bytes in the sector in which the frame begins
	if n := min(first, len(mark)); !bytes.Equal(rest[:n], mark[:n]) {
		return false
	}
	if len(rest) < frameHead || first < frameHead && lacksSector(rest[:min(first+sector, len(rest))], at) {
		return true
	}
	if !bytes.HasPrefix(rest, mark) {
		return false
	}
	n := int64(binary.BigEndian.Uint32(rest[4:]))
	if left := int64(len(rest) - frameHead); n > maxFrame || left > n {
		return false
	} else if left < n {
		return true
	}
	return lacksSector(rest, at)
}

// lacksSector says whether a whole sector of rest is zeros, or what of one is in it at its end.
func lacksSector(rest []byte, at int64) bool {
	for from := sector - int(at%sector); from < len(rest); from += sector {
		if part := rest[from:min(from+sector, len(rest))]; len(bytes.TrimLeft(part, "\x00")) == 0 {
			return true
		}
	}
	return false
}

// settleTail decides about what a log holds behind its last whole frame: what a power cut explains goes, the rest is set aside first.
func settleTail(t *ring.Task, dir string, e *ending, o Options) error {
	if len(e.rest) == 0 || !o.Clean && torn(e.rest, e.at) || len(bytes.TrimLeft(e.rest, "\x00")) == 0 {
		return nil
	}
	return setAside(t, dir, e, o)
}

// setAside writes what stands behind the last whole frame into a file beside the log, durably.
func setAside(t *ring.Task, dir string, e *ending, o Options) error {
	for n := 0; ; n++ {
		name := fmt.Sprintf("%s/%s.%d", dir, e.name, e.at)
		if n > 0 {
			name += fmt.Sprintf(".%d", n)
		}
		name += damagedSuffix
		f, err := t.Open(name, ring.Write|ring.Create|ring.Exclusive)
		if errors.Is(err, fs.ErrExist) && n < asideMost {
			continue
		}
		if err == nil {
			if err = t.Write(f, e.rest, 0); err == nil {
				err = t.Sync(f)
			}
			f.Close()
			if err != nil {
				_ = t.Remove(name) // or each start beside a full disk would leave another one
			}
		}
		if err == nil {
			err = t.SyncDir(dir)
		}
		if err != nil {
			return fmt.Errorf("damaged bytes of the metadata store cannot be set aside: %w", err)
		}
		if o.Log != nil {
			o.Log.Warn("the end of the metadata store is damaged and was set aside; changes in it are lost",
				"from", dir+"/"+e.name, "position", e.at, "length", len(e.rest), "file", name)
		}
		return nil
	}
}

// ended tells of a log that does not end as a clean stop leaves it: with the end of its session.
func (e *ending) ended(dir string, tr *tree, o Options) {
	if o.Clean && e.at > headerSize && len(tr.ephemerals) > 0 && o.Log != nil {
		o.Log.Warn("the metadata store does not end as a clean stop leaves it: it may have lost changes at its end",
			"file", dir+"/"+e.name, "length", e.at, "zxid", int64(tr.zxid))
	}
}

// ending is where the last whole frame of the last log ends, and what follows it.
type ending struct {
	name string
	at   int64
	rest []byte
}

// in puts the directory before the name of a file that is damaged.
func in(dir string, err error) error {
	var damage *DamageError
	if errors.As(err, &damage) {
		return &DamageError{dir + "/" + damage.File, damage.Offset, damage.What}
	}
	return err
}
