package coordinator

import (
	"bytes"
	"encoding/binary"
	"testing"
	"time"

	"kring/wire/batch"
)

func seeds(add func(key, value []byte), t testing.TB) {
	for _, p := range []string{"0.log", "1.log", "2.log", "decoder.log"} {
		golden(t, p, func(_ batch.Header, r *batch.Record) {
			if r != nil {
				add(r.Key, r.Value)
			}
		})
	}
}

// FuzzRecord takes any bytes for a record: what is decoded is encoded to what it was read from, and to bytes that say the same.
func FuzzRecord(f *testing.F) {
	seeds(func(key, value []byte) { f.Add(key, value) }, f)
	f.Fuzz(func(t *testing.T, key, value []byte) {
		k, err := DecodeKey(key)
		if err != nil {
			return
		}
		if again := k.AppendTo(nil); !bytes.HasPrefix(key, again) {
			t.Fatalf("key %x becomes %x", key, again)
		}
		_ = k.String()
		if k.Kind == OffsetKey {
			if v, err := DecodeOffset(value); err == nil {
				_ = v.String()
				if v.Version < 4 && !bytes.HasPrefix(value, v.AppendTo(nil)) {
					t.Fatalf("value %x becomes %x", value, v.AppendTo(nil))
				}
			}
			return
		}
		if v, err := DecodeGroup(value); err == nil {
			_ = v.String()
			if v.Version < 4 && !bytes.HasPrefix(value, v.AppendTo(nil)) {
				t.Fatalf("value %x becomes %x", value, v.AppendTo(nil))
			}
		}
	})
}

// entries cuts bytes into records: a byte of flags, and a key and a value with their lengths before them.
func entries(b []byte, visit func(flags byte, key, value []byte)) {
	field := func() []byte {
		n, size := binary.Uvarint(b)
		if size <= 0 {
			b = nil
			return nil
		}
		b = b[size:]
		n = min(n, uint64(len(b)))
		v := b[:n]
		b = b[n:]
		return v
	}
	for len(b) > 0 {
		flags := b[0]
		b = b[1:]
		key := field()
		value := field()
		if len(value) == 0 {
			value = nil
		}
		visit(flags, key, value)
	}
}

func appendEntry(b []byte, flags byte, key, value []byte) []byte {
	b = append(b, flags)
	b = append(binary.AppendUvarint(b, uint64(len(key))), key...)
	return append(binary.AppendUvarint(b, uint64(len(value))), value...)
}

// FuzzReplay reads a journal of any bytes: the shard comes up with its truths intact, lives on, and what it writes then is read again.
func FuzzReplay(f *testing.F) {
	var all []byte
	seeds(func(key, value []byte) {
		f.Add(appendEntry(nil, 0, key, value))
		all = appendEntry(all, byte(len(all)), key, value)
	}, f)
	f.Add(all)
	f.Fuzz(func(t *testing.T, b []byte) {
		w := newWorld(t)
		w.shard = w.newShard()
		w.shard.BeginLoad(1)
		offset := int64(0)
		entries(b, func(flags byte, key, value []byte) {
			producer := int64(flags >> 4)
			switch flags & 3 {
			case 3:
				w.shard.ReplayMarker(producer, flags&4 != 0, offset)
			default:
				w.shard.Replay(Entry{Offset: offset, ProducerID: producer, Transactional: flags&1 != 0, Key: key, Value: value})
			}
			offset++
			w.verify()
		})
		w.journal.end = offset
		w.shard.Loaded(1, w.now())
		w.verify()
		for _, g := range w.shard.order {
			view, _ := w.shard.Describe(g.id)
			for _, m := range view.Members {
				w.shard.Heartbeat(&Heartbeat{Group: g.id, Member: m.Member, Generation: view.Generation}, w.now())
			}
		}
		w.shard.Join(&Join{Group: "g-consumer", ProtocolType: "consumer", Protocols: []Protocol{{"range", nil}}, SessionMs: 6000,
			RebalanceMs: 1000, Done: func(*Join) {}}, w.now())
		w.mono += time.Minute
		w.shard.Tick(w.now())
		w.journal.answer(w.now())
		w.verify()
		w.mono += 100 * 24 * time.Hour
		w.shard.Tick(w.now())
		w.shard.Expire(w.now())
		w.journal.answer(w.now())
		w.verify()
		w.shard.Unload(2)
		w.verify()
		if w.shard.Groups() != 0 || w.shard.Offsets() != 0 {
			t.Fatalf("%d groups, %d offsets are left", w.shard.Groups(), w.shard.Offsets())
		}
	})
}
