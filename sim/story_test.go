package sim

import (
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"testing"
)

// TestStories runs a fixed set of seeds with 1, 2 and 4 loops.
func TestStories(t *testing.T) {
	seeds := 25
	if testing.Short() {
		seeds = 10
	}
	if n, err := strconv.Atoi(os.Getenv("SEEDS")); err == nil {
		seeds = n
	}
	first := uint64(0)
	if n, err := strconv.ParseUint(os.Getenv("SEED"), 10, 64); err == nil {
		first = n
	}
	for _, loops := range []int{1, 2, 4} {
		t.Run(fmt.Sprint(loops, " loops"), func(t *testing.T) {
			t.Parallel()
			acks, steps := 0, uint64(0)
			harmed := map[string]int{}
			codes := map[string]int{}
			for seed := first; seed < first+uint64(seeds); seed++ {
				o := Run(Plan{Seed: seed, Loops: loops})
				if o.Err != nil {
					t.Errorf("%v\n\treplay: SEED=%d LOOPS=%d go test ./sim -run TestStory$ -v", o.Err, seed, loops)
				}
				acks, steps = acks+o.Acks, steps+o.Steps
				for _, f := range o.Faults {
					harmed[f]++
				}
				for c, n := range o.Codes {
					codes[c.String()] += n
				}
			}
			t.Logf("%d stories, %d events, %d records acknowledged, faults %v, codes %v", seeds, steps, acks, harmed, codes)
		})
	}
}

// TestStory tells one story: SEED, and LOOPS if not 2.
func TestStory(t *testing.T) {
	seed, err := strconv.ParseUint(os.Getenv("SEED"), 10, 64)
	if err != nil {
		t.Skip("SEED names the story to tell")
	}
	loops := 2
	if n, err := strconv.Atoi(os.Getenv("LOOPS")); err == nil {
		loops = n
	}
	var story strings.Builder
	o := Run(Plan{Seed: seed, Loops: loops, Log: &story, Broker: slog.New(slog.NewTextHandler(&story, nil))})
	t.Output().Write([]byte(story.String()))
	t.Logf("digest %x, %d events, %d records acknowledged, faults %v, codes %v", o.Digest, o.Steps, o.Acks, o.Faults, o.Codes)
	if o.Err != nil {
		t.Fatal(o.Err)
	}
}

func TestStoriesReplayBySeed(t *testing.T) {
	for seed := range uint64(6) {
		loops := int(1 << (seed % 3))
		a, b := Run(Plan{Seed: seed, Loops: loops}), Run(Plan{Seed: seed, Loops: loops})
		if a.Digest != b.Digest || fmt.Sprint(a.Err) != fmt.Sprint(b.Err) {
			t.Fatalf("seed %d, %d loops: %x with %v, then %x with %v", seed, loops, a.Digest, a.Err, b.Digest, b.Err)
		}
	}
}

// TestALieIsFound: a checker that never finds anything is untested.
func TestALieIsFound(t *testing.T) {
	found, harmed := 0, 0
	for seed := range uint64(24) {
		o := Run(Plan{Seed: seed, Loops: 2, Lie: true})
		if o.PowerLosses > 0 {
			harmed++
		}
		if o.Err == nil {
			continue
		}
		found++
		if o.PowerLosses == 0 {
			t.Errorf("without a power loss, %v", o.Err)
		}
	}
	t.Logf("%d of 24 stories found acknowledged records lost, %d had a power loss", found, harmed)
	if found < harmed/2 || found == 0 {
		t.Errorf("topics that are not durable were taken for durable, and only %d stories of %d with a power loss noticed", found, harmed)
	}
}
