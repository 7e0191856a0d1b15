package wire

import "github.com/twmb/franz-go/pkg/kmsg"

// DecodeRequest reads the body of any request but Produce and Fetch (which have views).
func DecodeRequest(key, version int16, body []byte) (kmsg.Request, error) {
	lowest, highest, ok := Supported(key)
	switch {
	case !ok:
		return nil, ErrKey
	case version < lowest || version > highest:
		return nil, ErrVersion
	}
	req := kmsg.RequestForKey(key)
	req.SetVersion(version)
	if err := req.ReadFrom(body); err != nil {
		return nil, ErrBody
	}
	return req, nil
}

// AppendResponse appends the header and the body of an answer, in resp's version.
func AppendResponse(dst []byte, correlationID int32, resp kmsg.Response) []byte {
	return resp.AppendTo(AppendResponseHeader(dst, resp.Key(), resp.GetVersion(), correlationID))
}
