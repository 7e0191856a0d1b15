package config

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

func TestPropertiesAreReadAsJavaReadsThem(t *testing.T) {
	text, err := os.ReadFile("testdata/tricky.properties")
	if err != nil {
		t.Fatal(err)
	}
	all, err := ParseProperties(text)
	if err != nil {
		t.Fatal(err)
	}
	ours := map[string]string{}
	for _, p := range all {
		ours[javaEscape(p.Key)] = javaEscape(p.Value)
	}
	want, err := os.ReadFile("testdata/tricky.tsv")
	if err != nil {
		t.Fatal(err)
	}
	theirs := map[string]string{}
	for line := range strings.Lines(string(want)) {
		key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		theirs[key] = value
	}
	for _, k := range slices.Sorted(maps.Keys(theirs)) {
		if v, ok := ours[k]; !ok || v != theirs[k] {
			t.Errorf("%q: we read %q (%v), Java %q", k, v, ok, theirs[k])
		}
	}
	if len(ours) != len(theirs) {
		t.Errorf("%d keys, Java reads %d", len(ours), len(theirs))
	}
}

var javaEscape = strings.NewReplacer(`\`, `\\`, "\t", `\t`, "\n", `\n`, "\r", `\r`, "\f", `\f`).Replace

func TestPropertiesKeepOrderRepetitionsAndLines(t *testing.T) {
	all, err := ParseProperties([]byte("a=1\\\n 2\n#c\nb=3\na=4"))
	want := []Property{{"a", "12", 1}, {"b", "3", 4}, {"a", "4", 5}}
	if err != nil || !slices.Equal(all, want) {
		t.Errorf("%v %v", all, err)
	}
}

func TestBrokenUnicodeEscapeNamesItsLine(t *testing.T) {
	for _, text := range []string{"a=1\nb=\\u12", "a=1\n\\u12g4=2", "\nb=\\u"} {
		if _, err := ParseProperties([]byte(text)); err == nil || !strings.HasPrefix(err.Error(), "line 2: ") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func FuzzProperties(f *testing.F) {
	for _, name := range []string{"tricky.properties", "server.properties"} {
		text, err := os.ReadFile("testdata/" + name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Add([]byte("\\"))
	f.Add([]byte("a\\\r\n\\u0041"))
	f.Fuzz(func(t *testing.T, text []byte) {
		all, err := ParseProperties(text)
		if err != nil {
			return
		}
		size := 0
		for _, p := range all {
			size += len(p.Key) + len(p.Value)
			if p.Line < 1 || p.Line > 1+len(text) {
				t.Fatalf("line %d of %d bytes", p.Line, len(text))
			}
		}
		if size > 3*len(text) { // a byte above 127 becomes two, a lone surrogate of six characters three
			t.Fatalf("%d bytes of keys and values from %d", size, len(text))
		}
		var again strings.Builder
		for _, p := range all {
			again.WriteString(escapeAll(p.Key) + "=" + escapeAll(p.Value) + "\n")
		}
		back, err := ParseProperties([]byte(again.String()))
		if err != nil || len(back) != len(all) {
			t.Fatalf("%d properties written, %d read: %v", len(all), len(back), err)
		}
		for i := range all {
			if all[i].Key != back[i].Key || all[i].Value != back[i].Value {
				t.Fatalf("%q=%q came back as %q=%q", all[i].Key, all[i].Value, back[i].Key, back[i].Value)
			}
		}
	})
}

// escapeAll writes every UTF-16 unit as \uXXXX.
func escapeAll(s string) string {
	const hex = "0123456789abcdef"
	var b strings.Builder
	write := func(u uint16) {
		b.WriteString(`\u`)
		for shift := 12; shift >= 0; shift -= 4 {
			b.WriteByte(hex[u>>shift&15])
		}
	}
	for _, r := range s {
		if r >= 0x10000 {
			r -= 0x10000
			write(0xd800 + uint16(r>>10))
			write(0xdc00 + uint16(r&0x3ff))
		} else {
			write(uint16(r))
		}
	}
	return b.String()
}

// FuzzSettings gives any bytes as a file: it loads or says why not, and never panics.
func FuzzSettings(f *testing.F) {
	f.Add([]byte("listeners=A://[::1]:1,B://:2\nlistener.security.protocol.map=A:PLAINTEXT,B:PLAINTEXT"))
	f.Add([]byte("log.retention.ms=9\nmax.connections.per.ip.overrides=1.2.3.4:5\nbroker.id=3"))
	f.Fuzz(func(t *testing.T, text []byte) {
		all, err := ParseProperties(text)
		if err != nil {
			return
		}
		static := map[string]string{}
		for _, p := range all {
			static[p.Key] = p.Value
		}
		c, _, err := fromStatic(static)
		if err != nil {
			if strings.ContainsAny(err.Error(), "\n\r") {
				t.Fatalf("more than one line: %q", err)
			}
			return
		}
		c.DescribeBroker()
		c.DescribeTopic(static)
		c.Topic(static)
	})
}
