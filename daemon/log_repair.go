package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"kring/ring"
	"kring/segment"
)

// repair mends partitions that nobody has open.
type repair struct {
	inspection
	dryRun, rebuild     bool
	mended, mendedFiles int // partitions and checkpoint files
	done                segment.Repaired
}

func repairCommand() *cobra.Command {
	r := &repair{}
	cmd := &cobra.Command{
		Use:   "repair LOGDIR|DIR...",
		Short: "Mend the files of logs, while no broker runs on them",
		Long: `Verify partitions and mend what is wrong with them. ` + logArguments + `
What is no batch is copied, byte by byte, into a file beside the log whose name ends in .damaged, and then taken out of it; batches
before and behind it keep their offsets. Indexes, producer snapshots and leader epochs are made anew from the batches where
they were wrong. A checkpoint file that cannot be read gives way to an empty one, as at a start, and is kept beside it. Left alone are
what kring log verify only notes, because the next start deals with it (--rebuild makes it anew at once), and meta.properties.
It is refused while a broker, Kring or Kafka, uses the log dir.

Told are what was found, what was done about it (with --dry-run: what would be done), what is left, and last the sum.
Exit status: 0 if everything is sound now, 1 if something is left to be found, 6 if a broker uses the log dir, 7 if something could
not be read or written.`,
		Args: atLeast(1),
		Example: `  kring log repair --dry-run kring-data/words-0
  kring log repair kring-data`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return r.run(bufio.NewWriter(cmd.OutOrStdout()), args)
		},
	}
	cmd.Flags().BoolVarP(&r.dryRun, "dry-run", "n", false, "only say what would be done")
	cmd.Flags().BoolVar(&r.asJSON, "json", false, "one JSON object for each finding, each step and, last, the sum")
	cmd.Flags().BoolVar(&r.rebuild, "rebuild", false, "make all indexes, snapshots and leader epochs anew, even if nothing is wrong with them")
	return cmd
}

func (r *repair) run(out *bufio.Writer, args []string) error {
	r.quiet, r.alone, r.sum = true, true, r.summary
	var ofDirs []segment.Finding
	r.ofDirs = func(f segment.Finding) { ofDirs = append(ofDirs, f) }
	if err := r.begin(out, args); err != nil {
		return err
	}
	for _, f := range ofDirs {
		if !f.Harmless {
			r.before(f)
		}
	}
	dirs := slices.Clone(r.logDirs)
	seen := map[string]bool{}
	for _, dir := range dirs {
		seen[dir] = true
	}
	for _, p := range r.places {
		if dir := filepath.Dir(p.Dir); !seen[dir] {
			seen[dir] = true
			dirs = append(dirs, dir)
		}
	}
	kernel, err := ring.New(ring.Options{Loops: 1, Dirs: dirs, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	var failed error
	err = kernel.Run(func() {
		ring.Go(kernel.Loops()[0], func(t *ring.Task) {
			defer kernel.Stop()
			failed = r.all(t, dirs)
		})
	})
	if err == nil {
		err = failed
	}
	return r.end(err)
}

// all mends every partition, with the log dirs locked.
func (r *repair) all(t *ring.Task, dirs []string) error {
	for _, dir := range dirs {
		unlock, err := t.Loop().LockFile(dir + "/.lock")
		if err != nil {
			return &failure{startStatus(err), fmt.Errorf("log dir %s: %w", dir, err)}
		}
		defer unlock()
	}
	for _, dir := range r.logDirs {
		if err := r.checkpoints(t, dir); err != nil {
			return &failure{exitData, err}
		}
	}
	for _, p := range r.places {
		if err := r.one(t, p); err != nil {
			return &failure{exitData, err}
		}
	}
	return nil
}

// checkpoints puts empty files in the place of a log dir's checkpoints that cannot be read, and counts what is wrong with it then.
func (r *repair) checkpoints(t *ring.Task, dir string) error {
	done, err := segment.RepairCheckpoints(t, dir, r.dryRun)
	r.say(dir, done)
	r.mendedFiles += len(done.Steps)
	if err != nil {
		return err
	}
	_, err = segment.VerifyDir(dir, reading(func(f segment.Finding) {
		if !f.Harmless {
			r.found++
		}
	}))
	return err
}

// repairStep is one line of --json.
type repairStep struct {
	Dir  string `json:"dir"`
	Step string `json:"step"`
	Done bool   `json:"done"`
}

// say tells of the steps of the repair of dir, and adds them up.
func (r *repair) say(dir string, done segment.Repaired) {
	for _, text := range done.Steps {
		switch {
		case r.asJSON:
			r.json(repairStep{dir, text, !r.dryRun})
		case r.dryRun:
			fmt.Fprintf(r.out, "%s: would %s\n", dir, text)
		default:
			fmt.Fprintf(r.out, "%s: %s\n", dir, text)
		}
	}
	done.Steps = nil
	r.done.Add(done)
}

func (r *repair) json(what any) {
	b, err := json.Marshal(what)
	if err != nil {
		panic("daemon: what a repair did cannot be encoded: " + err.Error())
	}
	r.out.Write(append(b, '\n'))
}

// before tells of what was found before the repair, without the advice to run it.
func (r *repair) before(f segment.Finding) {
	switch {
	case r.asJSON:
		r.json(f)
	case strings.HasPrefix(f.Do, "kring log repair "):
		r.out.WriteString(strings.TrimSuffix(findingLine(f), "; "+f.Do+"\n") + "\n")
	default:
		r.out.WriteString(findingLine(f))
	}
}

// summary is the last line.
func (r *repair) summary() {
	if r.asJSON {
		r.json(struct {
			Partitions  int   `json:"partitions"`
			Checkpoints int   `json:"checkpoints"`
			Findings    int   `json:"findings"`
			Files       int   `json:"damagedFiles"`
			Bytes       int64 `json:"damagedBytes"`
			Done        bool  `json:"done"`
		}{r.mended, r.mendedFiles, r.found, r.done.Files, r.done.Bytes, !r.dryRun})
		return
	}
	what := count(int64(r.mended), "partition")
	if r.mendedFiles > 0 {
		what += " and " + count(int64(r.mendedFiles), "checkpoint")
	}
	if r.dryRun {
		fmt.Fprintf(r.out, "%s to be mended, %s\n", what, count(int64(r.found), "finding"))
		return
	}
	fmt.Fprintf(r.out, "%s mended, %s left", what, count(int64(r.found), "finding"))
	if r.done.Files > 0 {
		fmt.Fprintf(r.out, ", %s kept in %s", bytesText(float64(r.done.Bytes)), count(int64(r.done.Files), ".damaged file"))
	}
	fmt.Fprintln(r.out)
}

func (r *repair) one(t *ring.Task, p segment.Place) error {
	var found []segment.Finding
	h, err := r.verify(p, func(f segment.Finding) {
		if !f.Harmless {
			found = append(found, f)
		}
	})
	if err != nil {
		return err
	}
	for _, f := range found {
		r.before(f)
	}
	if len(found) == 0 && !r.rebuild {
		return nil // what a start deals with is left to it
	}
	plan := h.Plan(r.rebuild)
	if len(plan) > 0 {
		r.mended++
	}
	if r.dryRun {
		r.say(p.Dir, segment.Repaired{Steps: plan})
		r.found += len(found)
		return nil
	}
	o := p.Options()
	o.Log = slog.New(slog.DiscardHandler)
	done, err := segment.Repair(t, o, h, r.rebuild)
	r.say(p.Dir, done)
	if err != nil {
		return err
	}
	_, err = r.verify(p, r.tell)
	return err
}
