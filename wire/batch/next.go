package batch

// Next reads the size of the first batch of b, of any magic, from its first 17 bytes. b may be shorter than the batch: compare.
// ErrShort means that b has less than 17 bytes. A size no batch can have, or a magic that is unknown, is ErrCorrupt:
// zeros, which end a preallocated file, are.
func Next(b []byte) (size int, err error) {
	if len(b) < LogOverhead {
		return 0, ErrShort
	}
	h := Header(b)
	n := h.Size()
	if n < legacyTotalMin {
		return 0, ErrLength
	}
	if len(b) < PrefixSize {
		return 0, ErrShort
	}
	least := int64(legacyTotalMin)
	switch h.Magic() {
	case 0:
	case 1:
		least = LogOverhead + legacySizeV1
	case magicNow:
		least = HeaderSize
	default:
		return 0, ErrMagic
	}
	if n < least {
		return 0, ErrLength
	}
	return int(n), nil
}

// Whole is Next for bytes that are all there: it gives the first batch of b and what follows it. At the end of b, or where the
// last batch is cut short, as a fetch may cut it, it gives ErrShort.
func Whole(b []byte) (first, rest []byte, err error) {
	n, err := Next(b)
	if err != nil {
		return nil, b, err
	}
	if n > len(b) {
		return nil, b, ErrShort
	}
	return b[:n:n], b[n:], nil
}

// Verify checks one whole batch of any magic as recovery does: size and CRC.
func Verify(b []byte) error {
	n, err := Next(b)
	switch {
	case err != nil:
		return err
	case n != len(b):
		return ErrLength
	case Header(b).Magic() == magicNow:
		if !Header(b).Valid() {
			return ErrCRC
		}
	case !Legacy(b).Valid():
		return ErrCRC
	}
	return nil
}
