package metadata

import (
	"errors"
	"strings"
)

// DefaultEntity is the name of the node that holds a type's defaults.
const DefaultEntity = "<default>"

// ConfigNode is /config/<type>/<name>.
type ConfigNode struct{ Config Config }

// Encode gives the node's data.
func (n ConfigNode) Encode() []byte {
	b := []byte(`{"version":1,"config":{`)
	for i, s := range n.Config {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendString(append(appendString(b, s.Name), ':'), s.Value)
	}
	return append(b, `}}`...)
}

// DecodeConfig reads a configuration. A node without data is an empty one, as Kafka reads it.
func DecodeConfig(data []byte) (n ConfigNode, err error) {
	if len(data) == 0 {
		return n, nil
	}
	err = decode("configuration", data, func(f *fields) {
		f.version(1, 1)
		for _, m := range f.object("config") {
			value, ok := m.value.(string)
			if !ok {
				f.fail(m.key, "a string", m.value)
				return
			}
			if _, twice := n.Config.Get(m.key); twice {
				n.Config = n.Config.With(m.key, value)
				continue
			}
			n.Config = append(n.Config, Setting{m.key, value})
		}
	})
	return n, err
}

// ConfigChangeNode is /config/changes/config_change_<n>: an entity's configuration has changed.
type ConfigChangeNode struct {
	// Entity is the path below /config: topics/t, brokers/1, users/u/clients/c, ...
	Entity string
}

// Encode gives the node's data, version 2.
func (n ConfigChangeNode) Encode() []byte {
	return append(appendString([]byte(`{"version":2,"entity_path":`), n.Entity), '}')
}

// DecodeConfigChange reads a change of a configuration, versions 1 and 2.
func DecodeConfigChange(data []byte) (n ConfigChangeNode, err error) {
	err = decode("configuration change", data, func(f *fields) {
		if f.version(1, 2) == 1 {
			n.Entity = f.str("entity_type") + "/" + f.str("entity_name")
			return
		}
		n.Entity = f.str("entity_path")
	})
	return n, err
}

// Sanitize encodes the name of a user, client id or address for a path: every byte of its UTF-8 but letters, digits and .-_
// as %XX (Java's form encoding with %20 and %2A).
func Sanitize(name string) string {
	const hex = "0123456789ABCDEF"
	b := make([]byte, 0, len(name))
	for i := 0; i < len(name); i++ {
		c := name[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte(".-_", c) >= 0 {
			b = append(b, c)
		} else {
			b = append(b, '%', hex[c>>4], hex[c&15])
		}
	}
	return string(b)
}

var errSanitized = errors.New("no two hex digits follow a percent sign")

// Desanitize is the reverse of Sanitize; a plus sign is a space, as in Java.
func Desanitize(s string) (string, error) {
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '+':
			b = append(b, ' ')
		case '%':
			if i+2 >= len(s) || unhex(s[i+1]) < 0 || unhex(s[i+2]) < 0 {
				return "", errSanitized
			}
			b = append(b, byte(unhex(s[i+1])<<4|unhex(s[i+2])))
			i += 2
		default:
			b = append(b, s[i])
		}
	}
	return string(b), nil
}

func unhex(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c|0x20 >= 'a' && c|0x20 <= 'f':
		return int(c|0x20-'a') + 10
	}
	return -1
}

// ACLNode is /kafka-acl/<Type>/<name> and its prefixed sister.
type ACLNode struct{ ACLs []ACL }

// ACL is one rule, in the words of the node.
type ACL struct{ Principal, Permission, Host, Operation string }

// Encode gives the node's data.
func (n ACLNode) Encode() []byte {
	b := []byte(`{"acls":[`)
	for i, a := range n.ACLs {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendString(append(b, `{"principal":`...), a.Principal)
		b = appendString(append(b, `,"permissionType":`...), a.Permission)
		b = appendString(append(b, `,"host":`...), a.Host)
		b = append(appendString(append(b, `,"operation":`...), a.Operation), '}')
	}
	return append(b, `],"version":1}`...)
}

// DecodeACL reads the rules of one resource.
func DecodeACL(data []byte) (n ACLNode, err error) {
	err = decode("access control list", data, func(f *fields) {
		f.each("acls", func(x *fields) {
			n.ACLs = append(n.ACLs, ACL{x.str("principal"), x.str("permissionType"), x.str("host"), x.str("operation")})
		})
	})
	return n, err
}

// ACLChangeNode is /kafka-acl-changes/acl_changes_<n> (literal names) and /kafka-acl-extended-changes/acl_changes_<n>.
type ACLChangeNode struct{ ResourceType, Name, PatternType string }

// Encode gives the node's data: text for a literal name, else JSON.
func (n ACLChangeNode) Encode() []byte {
	if n.PatternType == "LITERAL" {
		return []byte(n.ResourceType + ":" + n.Name)
	}
	b := appendString([]byte(`{"version":1,"resourceType":`), n.ResourceType)
	b = appendString(append(b, `,"name":`...), n.Name)
	return append(appendString(append(b, `,"patternType":`...), n.PatternType), '}')
}

// DecodeACLChange reads a change of rules; extended tells which of the two kinds it is.
func DecodeACLChange(data []byte, extended bool) (n ACLChangeNode, err error) {
	if !extended {
		kind, name, ok := strings.Cut(string(data), ":")
		if !ok || kind == "" {
			return n, &ZnodeError{"access control change", errNoResource}
		}
		return ACLChangeNode{kind, name, "LITERAL"}, nil
	}
	err = decode("access control change", data, func(f *fields) {
		n = ACLChangeNode{f.str("resourceType"), f.str("name"), f.str("patternType")}
	})
	return n, err
}

// TokenNode is /delegation_token/tokens/<id>. Its principals are encoded as by Sanitize.
type TokenNode struct {
	Version                         int
	ID, Owner, Requester            string
	Renewers                        []string
	IssuedAt, ExpiresAt, MaxExpires int64 // Unix ms
}

// Encode gives the node's data, version 3.
func (n TokenNode) Encode() []byte {
	b := appendNumber([]byte(`{"issueTimestamp":`), n.IssuedAt)
	b = appendStrings(append(b, `,"renewers":`...), n.Renewers)
	b = appendString(append(b, `,"tokenRequester":`...), n.Requester)
	b = appendString(append(b, `,"tokenId":`...), n.ID)
	b = appendString(append(b, `,"owner":`...), n.Owner)
	b = appendNumber(append(b, `,"expiryTimestamp":`...), n.ExpiresAt)
	b = appendNumber(append(b, `,"maxTimestamp":`...), n.MaxExpires)
	return append(b, `,"version":3}`...)
}

// DecodeToken reads a delegation token, versions 1 to 3.
func DecodeToken(data []byte) (n TokenNode, err error) {
	err = decode("delegation token", data, func(f *fields) {
		n.Version = f.version(1, 3)
		n.ID, n.Owner = f.str("tokenId"), f.str("owner")
		n.Requester = n.Owner
		if f.has("tokenRequester") {
			n.Requester = f.str("tokenRequester")
		}
		n.Renewers = f.strings("renewers")
		n.IssuedAt, n.ExpiresAt, n.MaxExpires = f.int64("issueTimestamp"), f.int64("expiryTimestamp"), f.int64("maxTimestamp")
	})
	return n, err
}
