package config

import (
	"slices"
	"testing"
)

func TestReloadTakesWhatMayChange(t *testing.T) {
	first, _, err := fromStatic(settings("log.retention.ms=5 num.partitions=2 kring.log.level=info log.dirs=/a message.max.bytes=9000"))
	if err != nil {
		t.Fatal(err)
	}
	first.Advertised[0].Host, first.BrokerID = "found", 7
	running, errs := first.With(nil, settings("message.max.bytes=70000"))
	if errs != nil {
		t.Fatal(errs)
	}
	read, _, err := fromStatic(settings("log.retention.ms=6 num.partitions=3 kring.log.level=debug log.dirs=/a,/b"))
	if err != nil {
		t.Fatal(err)
	}
	next, changed, fixed, err := running.Reload(read)
	if err != nil || !slices.Equal(changed, []string{"kring.log.level", "log.retention.ms", "message.max.bytes"}) ||
		!slices.Equal(fixed, []string{"log.dirs", "num.partitions"}) {
		t.Fatalf("changed %v, fixed %v (%v)", changed, fixed, err)
	}
	if next.LogLevel != "debug" || next.Topic(nil).RetentionMs != 6 || next.NumPartitions != 2 || len(next.LogDirs) != 1 {
		t.Errorf("%+v", next)
	}
	if next.Topic(nil).MaxMessageBytes != 70000 || next.Advertised[0].Host != "found" || next.BrokerID != 7 {
		t.Error("what was set dynamically or found at start is lost")
	}
	if running.LogLevel != "info" || running.Topic(nil).RetentionMs != 5 {
		t.Error("the settings in force have changed under their readers")
	}
	if _, changed, fixed, err = next.Reload(next); err != nil || changed != nil || fixed != nil {
		t.Errorf("nothing has changed, but %v %v (%v)", changed, fixed, err)
	}
}
