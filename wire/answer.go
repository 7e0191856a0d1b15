package wire

import "encoding/binary"

// Leader is a partition's leader as answers name it (KIP-951). Set says that it is named at all.
type Leader struct {
	ID, Epoch int32
	Set       bool
}

// Node is where a leader that was named can be reached.
type Node struct {
	ID   int32
	Host string
	Port int32
	// Rack is "" for none.
	Rack string
}

// writer appends a body.
type writer struct {
	b    []byte
	flex bool
}

func (w *writer) int16(v int16) { w.b = binary.BigEndian.AppendUint16(w.b, uint16(v)) }
func (w *writer) int32(v int32) { w.b = binary.BigEndian.AppendUint32(w.b, uint32(v)) }
func (w *writer) int64(v int64) { w.b = binary.BigEndian.AppendUint64(w.b, uint64(v)) }

func (w *writer) uvarint(v uint32) {
	for v >= 0x80 {
		w.b = append(w.b, byte(v)|0x80)
		v >>= 7
	}
	w.b = append(w.b, byte(v))
}

// length is the length of an array or of bytes; -1 is null.
func (w *writer) length(n int) {
	if w.flex {
		w.uvarint(uint32(n + 1))
	} else {
		w.int32(int32(n))
	}
}

func (w *writer) stringLength(n int) {
	if w.flex {
		w.uvarint(uint32(n + 1))
	} else {
		w.int16(int16(n))
	}
}

func (w *writer) bytesAsString(s []byte) {
	w.stringLength(len(s))
	w.b = append(w.b, s...)
}

func (w *writer) string(s string) {
	w.stringLength(len(s))
	w.b = append(w.b, s...)
}

// nullable writes "" as null.
func (w *writer) nullable(s string) {
	if s == "" {
		w.stringLength(-1)
		return
	}
	w.string(s)
}

// noTags ends a struct of a flexible version that has no tagged field set.
func (w *writer) noTags() {
	if w.flex {
		w.b = append(w.b, 0)
	}
}

// leaderTag writes a Leader as a tagged field: number, size, the struct.
func (w *writer) leaderTag(tag byte, l Leader) {
	w.b = append(w.b, tag, 4+4+1)
	w.int32(l.ID)
	w.int32(l.Epoch)
	w.b = append(w.b, 0)
}

// endTags ends the body of an answer: tag 0 names the nodes, in versions that know it, if there are any.
func (w *writer) endTags(nodes []Node, known bool) {
	if !w.flex {
		return
	}
	if len(nodes) == 0 || !known {
		w.b = append(w.b, 0)
		return
	}
	size := uvarintSize(uint32(len(nodes) + 1))
	for i := range nodes {
		size += nodes[i].size()
	}
	w.b = append(w.b, 1, 0)
	w.uvarint(uint32(size))
	w.length(len(nodes))
	for i := range nodes {
		w.int32(nodes[i].ID)
		w.string(nodes[i].Host)
		w.int32(nodes[i].Port)
		w.nullable(nodes[i].Rack)
		w.b = append(w.b, 0)
	}
}

func (n *Node) size() int {
	size := 4 + uvarintSize(uint32(len(n.Host)+1)) + len(n.Host) + 4 + 1 + 1
	if n.Rack != "" {
		size += uvarintSize(uint32(len(n.Rack)+1)) - 1 + len(n.Rack)
	}
	return size
}

func uvarintSize(v uint32) int {
	n := 1
	for ; v >= 0x80; v >>= 7 {
		n++
	}
	return n
}
