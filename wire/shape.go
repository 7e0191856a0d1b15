package wire

import "strings"

// decodeMemoryMax bounds what decoding one request may take. The largest honest ones, UpdateMetadata of a cluster with
// hundreds of thousands of partitions, take a fraction; without the bound a body of socket.request.max.bytes could be made
// to take eighty times its size.
const decodeMemoryMax = 256 << 20

// What kmsg takes for things, in bytes, about: a struct in an array, a number or string in one, a tagged field.
const (
	structCost = 160
	itemCost   = 16
	tagCost    = 128
)

// shape walks a body by its layout.
type shape struct {
	r    reader
	flex bool
	cost int64 // bytes that decoding takes
}

// CheckBody says whether body is a request of this version, which must be a served one of any request but Produce and Fetch. Kmsg alone
// takes an array that is null where Kafka has none, or claims more than there is, for an empty one.
func CheckBody(key, version int16, body []byte) error { return checkShape(key, version, body) }

// checkShape says whether body is a request of this version, and whether decoding it takes a bearable amount of memory.
// Bytes after the last field are ignored.
func checkShape(key, version int16, body []byte) error {
	fields := ""
	for _, l := range layouts[key] {
		if int16(l.from) <= version {
			fields = l.fields
		}
	}
	s := shape{r: reader{b: body}, flex: Flexible(key, version)}
	s.structure(fields)
	switch {
	case s.cost > decodeMemoryMax:
		return ErrTooMany
	case s.r.bad:
		return ErrBody
	}
	return nil
}

// structure walks the fields of a struct and its tags.
func (s *shape) structure(fields string) {
	r := &s.r
	for len(fields) > 0 && !r.bad {
		kind, inner := fields[0], ""
		switch kind {
		case '[', '{':
			inner, fields = fields[1:2], fields[3:]
			s.items(inner[0], kind == '{')
		case '(', '<':
			inner, fields = nested(fields)
			s.structs(inner, kind == '<')
		default:
			s.field(kind)
			fields = fields[1:]
		}
	}
	if !s.flex {
		return
	}
	for n := r.uvarint(); n > 0 && !r.bad; n-- {
		r.uvarint()
		r.span(int(r.uvarint()))
		s.spend(tagCost)
	}
}

// spend counts memory; over the bound nothing more is read.
func (s *shape) spend(n int) {
	if s.cost += int64(n); s.cost > decodeMemoryMax {
		s.r.bad = true
	}
}

func (s *shape) field(kind byte) {
	r := &s.r
	switch kind {
	case '1', '2', '4', '8':
		r.span(int(kind - '0'))
	case 'u':
		r.span(16)
	case 's':
		s.spend(itemCost + len(r.string(s.flex)))
	case 'n':
		v, _ := r.nullableString(s.flex)
		s.spend(itemCost + len(v))
	case 'b':
		if r.nullableBytes(s.flex) == nil {
			r.bad = true
		}
	case 'B':
		r.nullableBytes(s.flex)
	default:
		panic("wire: layout has a field of unknown kind " + string(kind))
	}
}

// null takes the length of an array that is null off, if it is.
func (s *shape) null(nullable bool) bool {
	if !nullable {
		return false
	}
	ahead := s.r
	n := 0
	if s.flex {
		n = ahead.compactLength()
	} else {
		n = int(ahead.int32())
	}
	if ahead.bad || n >= 0 {
		return false
	}
	s.r = ahead
	return true
}

// items walks an array of what is no struct.
func (s *shape) items(kind byte, nullable bool) {
	if s.null(nullable) {
		return
	}
	n := s.r.count(s.flex, least(string(kind), s.flex))
	s.spend(n * itemCost)
	for ; n > 0 && !s.r.bad; n-- {
		s.field(kind)
	}
}

// structs walks an array of structs.
func (s *shape) structs(fields string, nullable bool) {
	if s.null(nullable) {
		return
	}
	size := least(fields, s.flex)
	if s.flex {
		size++
	}
	n := s.r.count(s.flex, size)
	s.spend(n * structCost)
	for ; n > 0 && !s.r.bad; n-- {
		s.structure(fields)
	}
}

// nested cuts what is in the bracket that fields begins with.
func nested(fields string) (inner, rest string) {
	depth := 0
	for i := range len(fields) {
		switch fields[i] {
		case '(', '<':
			depth++
		case ')', '>':
			if depth--; depth == 0 {
				return fields[1:i], fields[i+1:]
			}
		}
	}
	panic("wire: layout has a bracket without end")
}

// least is the least number of bytes that fields take, tags aside.
func least(fields string, flex bool) (n int) {
	for len(fields) > 0 {
		kind := fields[0]
		switch kind {
		case '1', '2', '4', '8':
			n += int(kind - '0')
		case 'u':
			n += 16
		case 's', 'n':
			n += 2 - at(flex)
		default:
			n += 4 - 3*at(flex)
		}
		if strings.IndexByte("[{", kind) >= 0 {
			fields = fields[3:]
		} else if strings.IndexByte("(<", kind) >= 0 {
			_, fields = nested(fields)
		} else {
			fields = fields[1:]
		}
	}
	return n
}
