package main

import (
	"bufio"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"kring/ring"
	"kring/segment"
)

// repair mends partitions that nobody has open.
type repair struct {
	inspection
	dryRun, rebuild bool
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
	cmd.Flags().BoolVar(&r.rebuild, "rebuild", false, "make all indexes, snapshots and leader epochs anew, even if nothing is wrong with them")
	return cmd
}

func (r *repair) run(out *bufio.Writer, args []string) error {
	r.quiet = true
	var ofDirs []segment.Finding
	r.ofDirs = func(f segment.Finding) { ofDirs = append(ofDirs, f) }
	if err := r.begin(out, args); err != nil {
		return err
	}
	for _, f := range ofDirs {
		if !f.Harmless {
			r.out.WriteString(findingLine(f))
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
	steps, err := segment.RepairCheckpoints(t, dir, r.dryRun)
	for _, step := range steps {
		r.say(dir, step)
	}
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

// say tells of a step of the repair of dir.
func (r *repair) say(dir, step string) {
	if r.dryRun {
		step = "would " + step
	}
	fmt.Fprintf(r.out, "%s: %s\n", dir, step)
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
		r.out.WriteString(findingLine(f))
	}
	steps := h.Plan(r.rebuild)
	if len(found) == 0 && !r.rebuild {
		return nil // what a start deals with is left to it
	}
	for _, step := range steps {
		r.say(p.Dir, step)
	}
	if r.dryRun {
		r.found += len(found)
		return nil
	}
	o := p.Options()
	o.Log = slog.New(slog.DiscardHandler)
	if err := segment.Repair(t, o, h, r.rebuild); err != nil {
		return err
	}
	_, err = r.verify(p, r.tell)
	return err
}
