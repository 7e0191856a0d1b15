package segment

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

const propertiesFile = "meta.properties"

// Meta is meta.properties, version 0: whose log dir it is.
type Meta struct {
	ClusterID string
	BrokerID  int32
}

// encodeProperties gives meta.properties as Java writes it; now is Unix ms.
func encodeProperties(m Meta, now int64) []byte {
	stamp := time.UnixMilli(now).UTC().Format("Mon Jan 02 15:04:05 UTC 2006")
	return fmt.Appendf(nil, "#\n#%s\nbroker.id=%d\nversion=0\ncluster.id=%s\n", stamp, m.BrokerID, m.ClusterID)
}

// decodeProperties reads meta.properties. Version 1 is that of KRaft, whose log dirs are not ours.
func decodeProperties(b []byte) (Meta, error) {
	values := make(map[string]string)
	for line := range strings.Lines(string(b)) {
		line = strings.TrimLeft(strings.TrimRight(line, "\r\n"), " \t\f")
		if line == "" || line[0] == '#' || line[0] == '!' {
			continue
		}
		at := strings.IndexAny(line, "=: \t")
		if at < 0 {
			at = len(line)
		}
		value := strings.TrimLeft(line[at:], " \t")
		if value != "" && (value[0] == '=' || value[0] == ':') {
			value = strings.TrimLeft(value[1:], " \t")
		}
		values[line[:at]] = strings.ReplaceAll(value, `\`, "")
	}
	if v := values["version"]; v != "0" {
		return Meta{}, fmt.Errorf("%w: version is %.20q, and a broker with ZooKeeper's layout needs 0 (1 is KRaft's)", ErrMalformed, v)
	}
	id, err := strconv.ParseInt(values["broker.id"], 10, 32)
	if err != nil || id < 0 {
		return Meta{}, fmt.Errorf("%w: broker.id is %.20q", ErrMalformed, values["broker.id"])
	}
	return Meta{ClusterID: values["cluster.id"], BrokerID: int32(id)}, nil
}
