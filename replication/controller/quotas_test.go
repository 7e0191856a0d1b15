package controller

import (
	"bytes"
	"log/slog"
	"math"
	"slices"
	"strings"
	"testing"
)

// TestQuotasAreStoredAsKafkas: the nodes, the notifications and their order; what else a node holds stays.
func TestQuotasAreStoredAsKafkas(t *testing.T) {
	x := newCluster(t, 1)
	var said bytes.Buffer
	x.set = func(o *Options) {
		o.Log = slog.New(slog.NewTextHandler(&said, &slog.HandlerOptions{Level: slog.LevelWarn}))
	}
	x.start()
	named := func(name string) QuotaName { return QuotaName{Named: true, Name: name} }
	alter := func(e QuotaEntity, ops ...QuotaOp) (out error) {
		x.do(func(done func()) {
			x.c.AlterQuotas([]AlterQuota{{e, ops}}, false, func(errs []error) { out = errs[0]; done() })
		})
		return out
	}
	find := func(f QuotaFilter) (found []ClientQuota) {
		x.do(func(done func()) {
			x.c.ClientQuotas(f, func(q []ClientQuota, err error) {
				if err != nil {
					t.Error(err)
				}
				found = q
				done()
			})
		})
		return found
	}
	if said.Len() > 0 {
		t.Fatal(said.String())
	}
	before := len(x.store.notes)
	bob := QuotaEntity{User: named("b+ *öb")}
	both := QuotaEntity{User: named("bob"), Client: named("app 1")}
	for _, err := range []error{alter(bob, QuotaOp{Key: "request_percentage", Value: 50.5}, QuotaOp{Key: "producer_byte_rate", Value: 1 << 20}),
		alter(both, QuotaOp{Key: "controller_mutation_rate", Value: 12.5}), alter(bob, QuotaOp{Key: "request_percentage", Remove: true}),
		alter(QuotaEntity{IP: QuotaName{Named: true, Default: true}}, QuotaOp{Key: "connection_creation_rate", Value: 200})} {
		if err != nil {
			t.Fatal(err)
		}
	}
	x.settle()
	user, pair := "/config/users/b%2B%20%2A%C3%B6b", "/config/users/bob/clients/app%201"
	const change = "create /config/changes/config_change_"
	want := []string{"create " + user, change, "create /config/users/bob", "create /config/users/bob/clients", "create " + pair, change,
		"check /controller + setData " + user, change, "create /config/ips/<default>", change}
	if got := x.store.notes[before:]; !slices.Equal(got, want) {
		t.Errorf("written:\n %s\nwanted:\n %s", strings.Join(got, "\n "), strings.Join(want, "\n "))
	}
	for path, want := range map[string]string{user: `1 0 {"version":1,"config":{"producer_byte_rate":"1048576"}}`,
		pair:                `0 0 {"version":1,"config":{"controller_mutation_rate":"12.5"}}`,
		"/config/users/bob": "0 1 null", "/config/ips/<default>": `0 0 {"version":1,"config":{"connection_creation_rate":"200"}}`,
		"/config/changes/config_change_0000000001": `0 0 {"version":2,"entity_path":"users/bob/clients/app%201"}`} {
		if got := x.node(path); got != want {
			t.Errorf("%s: %s, wanted %s", path, got, want)
		}
	}
	if n := strings.Count(said.String(), "not enforced"); n != 1 {
		t.Errorf("warned %d times: %s", n, said.String())
	}
	x.stop()
	said.Reset()
	x.start()
	x.settle()
	if n := strings.Count(said.String(), "not enforced"); n != 1 {
		t.Errorf("warned %d times at the start: %s", n, said.String())
	}
	if all := find(QuotaFilter{}); len(all) != 3 || all[1].Entity != both || all[1].Values[0] != (QuotaValue{"controller_mutation_rate", 12.5}) {
		t.Errorf("found %+v", all)
	}
	if one := find(QuotaFilter{User: QuotaMatch{Asked: true, QuotaName: bob.User}, Strict: true}); len(one) != 1 || one[0].Entity != bob {
		t.Errorf("found %+v", one)
	}
	if err := alter(both, QuotaOp{Key: "controller_mutation_rate", Remove: true}); err != nil || x.node("/config/users/bob") != "" {
		t.Errorf("%v; left: %s", err, x.node("/config/users/bob"))
	}
	x.stop()
}

// TestJavasNumbers: a value stands in its node as Java writes it, and is read as Java reads it.
func TestJavasNumbers(t *testing.T) {
	for v, want := range map[float64]string{0: "0.0", math.Copysign(0, -1): "-0.0", 50.5: "50.5", 1: "1.0", 9999999: "9999999.0", 1e7: "1.0E7",
		12345678.9: "1.23456789E7", 0.001: "0.001", 0.0001: "1.0E-4", -2.5: "-2.5", 1e300: "1.0E300", math.Inf(1): "Infinity",
		math.Inf(-1): "-Infinity", math.MaxFloat64: "1.7976931348623157E308"} {
		if got := javaDouble(v); got != want && v != 0 {
			t.Errorf("%v is written %s, wanted %s", v, got, want)
		}
		if got, ok := readQuota(want); !ok || got != v {
			t.Errorf("%s is read as %v, %v", want, got, ok)
		}
	}
	for _, bad := range []string{"", "x", "0x10", "1_000", "inf", "1 2", "nan"} {
		if v, ok := readQuota(bad); ok {
			t.Errorf("%q is read as %v", bad, v)
		}
	}
	if v, ok := readQuota("NaN"); !ok || !math.IsNaN(v) {
		t.Error(v, ok)
	}
}
