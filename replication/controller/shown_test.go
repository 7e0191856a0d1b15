package controller

import "testing"

// TestAlterationIsShownWhenItIsAnswered: who describes a topic right after its settings were altered sees the new ones.
func TestAlterationIsShownWhenItIsAnswered(t *testing.T) {
	for seed := range uint64(20) {
		x := newCluster(t, seed)
		x.start()
		x.mustCreate(topicNamed("t", 1))
		alter := []AlterConfig{{Resource: TopicResource, Topic: "t", Ops: []ConfigOp{{ConfigSet, "max.message.bytes", text("2000")}}}}
		x.do(func(done func()) {
			x.c.AlterConfigs(alter, false, func(errs []error) {
				if got, ok := x.c.image.Topic("t").Config.Get("max.message.bytes"); errs[0] != nil || !ok || got != "2000" {
					t.Errorf("seed %d: %v; the picture shows %q", seed, errs[0], got)
				}
				done()
			})
		})
	}
}
