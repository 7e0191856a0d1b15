package broker

import (
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// quotaEntry is a change of an entity's quotas, in words: user=bob, client-id (the default), key:=value, -key.
func quotaEntry(words ...string) kmsg.AlterClientQuotasRequestEntry {
	e := kmsg.NewAlterClientQuotasRequestEntry()
	for _, w := range words {
		if key, value, set := strings.Cut(w, ":="); set {
			v, err := strconv.ParseFloat(value, 64)
			if err != nil {
				panic(err)
			}
			e.Ops = append(e.Ops, kmsg.AlterClientQuotasRequestEntryOp{Key: key, Value: v})
		} else if strings.HasPrefix(w, "-") {
			e.Ops = append(e.Ops, kmsg.AlterClientQuotasRequestEntryOp{Key: w[1:], Remove: true})
		} else {
			kind, name, named := strings.Cut(w, "=")
			part := kmsg.AlterClientQuotasRequestEntryEntity{Type: kind}
			if named {
				part.Name = &name
			}
			e.Entity = append(e.Entity, part)
		}
	}
	return e
}

// setQuotaCases set quotas, look for them in all ways, and take them away.
func setQuotaCases() []adminCase {
	alter := func(name string, validate bool, entries ...kmsg.AlterClientQuotasRequestEntry) adminCase {
		m := kmsg.NewPtrAlterClientQuotasRequest()
		m.ValidateOnly, m.Entries = validate, entries
		return adminCase{name, 0, 1, m, false}
	}
	find := func(name string, strict bool, words ...string) adminCase {
		m := kmsg.NewPtrDescribeClientQuotasRequest()
		m.Strict = strict
		for _, w := range words {
			kind, match, exact := strings.Cut(w, "=")
			p := kmsg.DescribeClientQuotasRequestComponent{EntityType: kind, MatchType: kmsg.QuotasMatchTypeAny}
			if exact {
				p.MatchType, p.Match = kmsg.QuotasMatchTypeExact, &match
				if match == "" {
					p.MatchType, p.Match = kmsg.QuotasMatchTypeDefault, nil
				}
			}
			m.Components = append(m.Components, p)
		}
		return adminCase{name, 1, 1, m, false}
	}
	e := quotaEntry
	cases := []adminCase{
		alter("nothing", false), alter("of nobody", false, e("producer_byte_rate:=1")), alter("no name", false, e("user=", "producer_byte_rate:=1")),
		alter("no address", false, e("ip=no.such.host.invalid", "connection_creation_rate:=1")), alter("IPv6", false, e("ip=::1", "connection_creation_rate:=1")),
		alter("address and user", false, e("ip=10.0.0.1", "user=bob", "connection_creation_rate:=1")),
		alter("another kind", false, e("planet=mars", "producer_byte_rate:=1")), alter("unknown key", false, e("user=bob", "colour:=1")),
		alter("an address's key for a user", false, e("user=bob", "connection_creation_rate:=1")),
		alter("a user's key for an address", false, e("ip=10.0.0.1", "producer_byte_rate:=1")),
		alter("a credential", false, e("user=bob", "SCRAM-SHA-256:=1")), alter("a credential of a client", false, e("client-id=app", "SCRAM-SHA-256:=1")),
		alter("no whole number", false, e("user=bob", "producer_byte_rate:=1.5")), alter("below zero", false, e("user=bob", "consumer_byte_rate:=-5")),
		alter("almost whole", true, e("user=bob", "producer_byte_rate:=1.0000001")), alter("endless", false, e("user=bob", "producer_byte_rate:=Inf")),
		alter("validated", true, e("user=bob", "producer_byte_rate:=1024")), alter("address twice over", false, e("ip=10.0.0.1", "connection_creation_rate:=3000000000")),
		find("still none", false),
		alter("set", false, e("user=bob", "producer_byte_rate:=1048576", "request_percentage:=50.5", "consumer_byte_rate:=NaN"),
			e("client-id=app 1", "consumer_byte_rate:=9223372036854775807"), e("user=bob", "client-id=app 1", "controller_mutation_rate:=12345678.9"),
			e("ip=127.0.0.9", "connection_creation_rate:=100"), e("user", "producer_byte_rate:=0"), e("client-id", "request_percentage:=20000.25"),
			e("user=bob", "client-id", "producer_byte_rate:=5"), e("user", "client-id=x/y", "producer_byte_rate:=6"), e("ip", "connection_creation_rate:=200"),
			e("user=b+ *\u00f6b", "request_percentage:=0.0001"), e("user=eve", "request_percentage:=1e300", "controller_mutation_rate:=-2.5")),
		alter("one twice", false, e("user=eve", "producer_byte_rate:=7"), e("user=eve", "producer_byte_rate:=8.5"), e("user=eve", "user=bea", "consumer_byte_rate:=4")),
		find("everything", false), find("everything strictly", true), find("users", false, "user"), find("users strictly", true, "user"),
		find("clients", false, "client-id"), find("clients strictly", true, "client-id"), find("pairs", false, "user", "client-id"),
		find("addresses", false, "ip"), find("an address", true, "ip=127.0.0.9"), find("the default address", false, "ip="), find("bob", false, "user=bob"),
		find("bob strictly", true, "user=bob"), find("an encoded name", true, "user=b+ *\u00f6b"), find("the default user", false, "user="),
		find("an app", false, "client-id=app 1"), find("an app strictly", true, "client-id=app 1"), find("bob's app", false, "user=bob", "client-id=app 1"),
		find("bob's default app", true, "user=bob", "client-id="), find("any user's app", true, "user", "client-id=app 1"), find("nobody", false, "user=nobody"),
		find("nobody's app", true, "user=nobody", "client-id"),
	}
	away := []adminCase{
		alter("away", false, e("user=bob", "-request_percentage", "-no_such_key"), e("ip=127.0.0.9", "-connection_creation_rate"),
			e("user=never", "-producer_byte_rate")),
		find("what is left", false),
		alter("all away", false, e("user=bob", "-producer_byte_rate", "-consumer_byte_rate"), e("client-id=app 1", "-consumer_byte_rate"),
			e("user=bob", "client-id=app 1", "-controller_mutation_rate"), e("user", "-producer_byte_rate"), e("client-id", "-request_percentage"),
			e("user=bob", "client-id", "-producer_byte_rate"), e("user", "client-id=x/y", "-producer_byte_rate"), e("ip", "-connection_creation_rate"),
			e("user=b+ *\u00f6b", "-request_percentage"), e("user=eve", "-request_percentage", "-producer_byte_rate", "-controller_mutation_rate"), e("user=bea", "-consumer_byte_rate")),
		find("none", false),
	}
	return append(cases, away...)
}
