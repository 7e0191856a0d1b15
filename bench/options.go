package bench

import (
	"errors"
	"fmt"
	"time"

	"kring/wire/batch"
)

// Options says what to run. The zero value of a field means what its comment says.
type Options struct {
	// Addr is the broker, host:port.
	Addr string
	// Topic is made if absent, with Partitions and Config, replicated Replicas times.
	Topic      string
	Partitions int
	Replicas   int
	Config     map[string]string
	// Conns is the number of producing connections; connection i writes to partition i mod Partitions.
	Conns int
	// Readers is the number of consuming connections of Tail and Consume.
	Readers int
	// Size is the bytes of one record's value, Records the records of one request.
	Size    int
	Records int
	// Codec compresses the batches: none, gzip, snappy, lz4, zstd.
	Codec string
	// Acks is -1, 0 or 1.
	Acks int
	// Rate is requests per second in all (open loop); 0 is a closed loop.
	Rate float64
	// Groups is the number of groups, named after Topic, Members those of each.
	Groups, Members int
	// Count is how many offsets are committed in all; 0: as many as Duration allows.
	Count int64
	// Clean is how long the offsets topic must keep its size to count as cleaned; 0: its size is told at once.
	Clean time.Duration
	// Keys is how many keys records have, Bytes how many bytes of values are written in all, and Checkpoint the broker's
	// cleaner-offset-checkpoint; of Compact alone.
	Keys       int
	Bytes      int64
	Checkpoint string
	// Warm is run but not measured; Duration is measured.
	Warm, Duration time.Duration
	// PIDs are the broker's processes, whose CPU and memory are counted.
	PIDs []int
	// Progress, if set, is called about once a second with the part done and a word on what is being done.
	Progress func(done float64, what string)
}

func (o *Options) check() error {
	switch {
	case o.Addr == "":
		return errors.New("bench: no broker address")
	case o.Topic == "":
		return errors.New("bench: no topic")
	case o.Partitions < 1 || o.Conns < 1 || o.Records < 1:
		return fmt.Errorf("bench: partitions (%d), connections (%d) and records per request (%d) must be at least 1",
			o.Partitions, o.Conns, o.Records)
	case o.Size < 8:
		return fmt.Errorf("bench: a record value holds its send time: size %d must be at least 8", o.Size)
	case o.Acks < -1 || o.Acks > 1:
		return fmt.Errorf("bench: acks is -1, 0 or 1, not %d", o.Acks)
	}
	if _, ok := batch.CodecByName(o.Codec); !ok && o.Codec != "" {
		return fmt.Errorf("bench: codec %q is none of none, gzip, snappy, lz4, zstd", o.Codec)
	}
	return nil
}

func (o *Options) tell(done float64, what string) {
	if o.Progress != nil {
		o.Progress(done, what)
	}
}
