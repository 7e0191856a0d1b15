package conformance

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// programs are the folders with a program that uses a client library as its manual shows: `run BOOTSTRAP PREFIX` prints a line for
// each step and ends with an error at the first that goes wrong. CLIENTS names those to run, parted by commas.
var programs = []string{
	"java-4", "java-3.9", "librdkafka", "kafkajs", "confluent-kafka", "kafka-python", "aiokafka", "franz-go", "sarama", "kafka-go",
}

// programMax bounds one program; on an idle machine the slowest needs 15 s.
const programMax = 10 * time.Minute

// clientStep is a line of a program. Ok is true, false or "unsupported": what the client itself cannot do, with the reason.
type clientStep struct {
	Step   string          `json:"step"`
	Ok     any             `json:"ok"`
	Detail json.RawMessage `json:"detail"`
}

func (s clientStep) String() string { return fmt.Sprintf("%s: %v %s", s.Step, s.Ok, s.Detail) }

// TestClients has each program tell the same of kring, with each count of loops, as of Kafka.
func TestClients(t *testing.T) {
	settings := []string{"num.partitions=4", "group.initial.rebalance.delay.ms=0"}
	names := []string{"kafka"}
	brokers := []*broker{}
	if os.Getenv("CONFORMANCE_ADDR") == "" {
		brokers = append(brokers, startKafka(t, settings...))
		for _, n := range loops {
			names = append(names, fmt.Sprint("loops=", n))
			brokers = append(brokers, start(t, n, settings...))
		}
	} else {
		brokers = append(brokers, start(t, 0))
	}
	chosen := programs
	if only := os.Getenv("CLIENTS"); only != "" {
		chosen = strings.Split(only, ",")
	}
	for _, program := range chosen {
		t.Run(program, func(t *testing.T) {
			t.Parallel()
			told := make([][]clientStep, len(brokers))
			errs := make([]error, len(brokers))
			for i := 0; i < len(brokers); i += 2 { // two at a time
				var both sync.WaitGroup
				for j := i; j < min(i+2, len(brokers)); j++ {
					both.Go(func() { told[j], errs[j] = runProgram(program, brokers[j].addr, fmt.Sprintf("%s-%d", program, j)) })
				}
				both.Wait()
			}
			for i, name := range names {
				if errs[i] != nil {
					t.Errorf("%s: %v", name, errs[i])
				}
			}
			for i := 1; i < len(names) && !t.Failed(); i++ {
				compareSteps(t, names[i], told[i], told[0])
			}
		})
	}
}

// runProgram gives the steps that a program tells of a broker.
func runProgram(program, addr, prefix string) ([]clientStep, error) {
	ctx, cancel := context.WithTimeout(context.Background(), programMax)
	defer cancel()
	cmd := exec.CommandContext(ctx, "./run", addr, prefix)
	cmd.Dir = program
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	err := cmd.Run()
	if err != nil {
		return nil, fmt.Errorf("%w\n%s\n%s", err, tail(out.String(), 3000), tail(said.String(), 3000))
	}
	var steps []clientStep
	for line := range strings.Lines(out.String()) {
		var s clientStep
		if err := json.Unmarshal([]byte(line), &s); err != nil || s.Step == "" {
			return nil, fmt.Errorf("not a step: %v: %s", err, line)
		}
		if s.Ok != true && s.Ok != "unsupported" {
			return nil, fmt.Errorf("a step went wrong, but the program ended well: %s", line)
		}
		steps = append(steps, s)
	}
	if len(steps) < 5 {
		return nil, fmt.Errorf("only %d steps:\n%s\n%s", len(steps), out.String(), said.String())
	}
	return steps, nil
}

func compareSteps(t *testing.T, name string, got, want []clientStep) {
	t.Helper()
	for i := range min(len(got), len(want)) {
		if got[i].String() != want[i].String() {
			t.Errorf("%s:\n  kring %s\n  Kafka %s", name, got[i], want[i])
		}
	}
	if len(got) != len(want) {
		t.Errorf("%s: %d steps, with Kafka %d", name, len(got), len(want))
	}
}
