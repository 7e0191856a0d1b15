package metadata

import (
	"fmt"
	"strconv"
)

// ZnodeError is a node whose data is not what Kafka writes there.
type ZnodeError struct {
	Kind string // which of Kafka's nodes it should be
	Err  error
}

func (e *ZnodeError) Error() string { return "malformed " + e.Kind + ": " + e.Err.Error() }

// Unwrap gives what is wrong with it.
func (e *ZnodeError) Unwrap() error { return e.Err }

// decode reads an object and hands it to read; what read finds wrong is wrapped.
func decode(kind string, data []byte, read func(f *fields)) error {
	o, err := parseObject(data)
	if err == nil {
		f := &fields{o: o}
		read(f)
		err = f.err
	}
	if err != nil {
		return &ZnodeError{kind, err}
	}
	return nil
}

// ClusterIDNode is /cluster/id.
type ClusterIDNode struct{ ID string }

// Encode gives the node's data.
func (n ClusterIDNode) Encode() []byte {
	return append(appendString([]byte(`{"version":"1","id":`), n.ID), '}')
}

// DecodeClusterID reads /cluster/id.
func DecodeClusterID(data []byte) (n ClusterIDNode, err error) {
	err = decode("cluster id", data, func(f *fields) { n.ID = f.str("id") })
	return n, err
}

// ControllerNode is /controller.
type ControllerNode struct {
	Broker    int32
	Timestamp int64 // Unix ms
	// KRaftEpoch is -1 but during a migration to KRaft; such a controller is no broker of this kind.
	KRaftEpoch int32
}

// Encode gives the node's data.
func (n ControllerNode) Encode() []byte {
	return fmt.Appendf(nil, `{"version":2,"brokerid":%d,"timestamp":"%d","kraftControllerEpoch":%d}`, n.Broker, n.Timestamp, n.KRaftEpoch)
}

// DecodeController reads /controller, versions 1 and 2.
func DecodeController(data []byte) (n ControllerNode, err error) {
	err = decode("controller", data, func(f *fields) {
		n.Broker, n.KRaftEpoch = f.int32("brokerid"), -1
		if f.has("timestamp") {
			n.Timestamp = f.int64("timestamp")
		}
		if f.has("kraftControllerEpoch") {
			n.KRaftEpoch = f.int32("kraftControllerEpoch")
		}
	})
	return n, err
}

// EncodeControllerEpoch gives the data of /controller_epoch: plain decimal text.
func EncodeControllerEpoch(e ControllerEpoch) []byte { return strconv.AppendInt(nil, int64(e), 10) }

// DecodeControllerEpoch reads /controller_epoch.
func DecodeControllerEpoch(data []byte) (ControllerEpoch, error) {
	n, err := strconv.ParseInt(string(data), 10, 32)
	if err != nil || n < 0 {
		return 0, &ZnodeError{"controller epoch", fmt.Errorf("%q is no epoch", show(string(data)))}
	}
	return ControllerEpoch(n), nil
}

// FeatureNode is /feature.
type FeatureNode struct {
	Version  int // 2 since IBP 3.3, before it 1
	Enabled  bool
	Features []Feature
}

// Feature is a finalized feature's range of version levels; Min is written in version 1 only.
type Feature struct {
	Name     string
	Min, Max int16
}

// Encode gives the node's data.
func (n FeatureNode) Encode() []byte {
	b := []byte(`{"features":{`)
	for i, x := range n.Features {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendString(b, x.Name)
		b = append(b, ":{"...)
		if n.Version == 1 {
			b = fmt.Appendf(b, `"min_version_level":%d,`, x.Min)
		}
		b = fmt.Appendf(b, `"max_version_level":%d}`, x.Max)
	}
	status := 0
	if n.Enabled {
		status = 1
	}
	return fmt.Appendf(b, `},"version":%d,"status":%d}`, n.Version, status)
}

// DecodeFeature reads /feature, versions 1 and 2.
func DecodeFeature(data []byte) (n FeatureNode, err error) {
	err = decode("feature node", data, func(f *fields) {
		n.Version = f.version(1, 2)
		n.Enabled = f.number("status", 0, 1) == 1
		for _, m := range f.object("features") {
			o, ok := m.value.(object)
			if !ok {
				f.fail(m.key, "an object", m.value)
				return
			}
			x := fields{o: o}
			feature := Feature{Name: m.key, Min: 1, Max: int16(x.number("max_version_level", 0, 1<<15-1))}
			if n.Version == 1 {
				feature.Min = int16(x.number("min_version_level", 0, 1<<15-1))
			}
			if x.err != nil && f.err == nil {
				f.err = fmt.Errorf("feature %q: %w", m.key, x.err)
			}
			n.Features = append(n.Features, feature)
		}
	})
	return n, err
}

// ProducerIDBlock is /latest_producer_id_block: the last block given out, both ends in it.
type ProducerIDBlock struct {
	Broker      int32
	First, Last int64
}

// Encode gives the node's data.
func (n ProducerIDBlock) Encode() []byte {
	return fmt.Appendf(nil, `{"version":1,"broker":%d,"block_start":"%d","block_end":"%d"}`, n.Broker, n.First, n.Last)
}

// DecodeProducerIDBlock reads /latest_producer_id_block.
func DecodeProducerIDBlock(data []byte) (n ProducerIDBlock, err error) {
	err = decode("producer id block", data, func(f *fields) {
		n.Broker, n.First, n.Last = f.int32("broker"), f.number("block_start", 0, 1<<63-1), f.number("block_end", 0, 1<<63-1)
	})
	return n, err
}
