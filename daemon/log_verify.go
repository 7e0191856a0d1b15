package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"

	"kring/ring"
	"kring/segment"
)

// inspection is a look at log dirs and partitions on disk, and what it has found.
type inspection struct {
	asJSON, quiet   bool
	verbose         bool // each note has its line
	out             *bufio.Writer
	notes           notes
	running         map[string]bool // log dirs that a broker uses
	alone           bool            // none does: we hold the locks, and closing any descriptor of such a file would give it up
	bar             *progressbar.ProgressBar
	places          []segment.Place
	logDirs         []string              // those among the arguments
	ofDirs          func(segment.Finding) // is told of log dirs' own files; nil: tell
	sum             func()                // writes the last line; nil: how much was found
	found, harmless int
	bytes           int64
}

// errFound is the end of a verification that has found something.
type errFound struct{ n int }

func (e errFound) Error() string { return count(int64(e.n), "finding") }

const logArguments = `A log dir stands for itself and all partitions in it; a partition's directory is <log dir>/<topic>-<partition>.`

func verifyCommand() *cobra.Command {
	v := &inspection{}
	cmd := &cobra.Command{
		Use:   "verify LOGDIR|DIR...",
		Short: "Look for damage in the files of logs, without changing them",
		Long: `Read log dirs and partitions whole and tell what in them is not as it should be: every batch's checksum and offsets, indexes,
transaction indexes, producer snapshots, leader epochs, checkpoints. ` + logArguments + `
Nothing is changed, and no broker is disturbed; of a running one the newest writes may look torn.

One line for each finding: the file, the position, what it is, what to do about it. A line that begins with "note:" tells of
something that does no harm: the next start deals with it, or nothing need be done. Notes of one kind are one line, unless --verbose
or --json is given.
Exit status: 0 if there is nothing but notes, 1 if something was found, 3 for wrong arguments, 7 if something could not be read.`,
		Args: atLeast(1),
		Example: `  kring log verify kring-data
  kring log verify --json kring-data/words-0 kring-data/words-1`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := v.begin(cmd.OutOrStdout(), args); err != nil {
				return err
			}
			for _, p := range v.places {
				if _, err := v.verify(p, v.tell); err != nil {
					return v.end(&failure{exitData, err})
				}
			}
			return v.end(nil)
		},
	}
	cmd.Flags().BoolVar(&v.asJSON, "json", false, "one JSON object for each finding")
	cmd.Flags().BoolVarP(&v.quiet, "quiet", "q", false, "leave the notes out")
	cmd.Flags().BoolVarP(&v.verbose, "verbose", "v", false, "a line for each note, not for each kind of them")
	return cmd
}

// begin finds the partitions and looks at the log dirs' own files.
func (v *inspection) begin(out io.Writer, args []string) error {
	v.out = bufio.NewWriter(out)
	total := int64(0)
	tell := v.ofDirs
	if tell == nil {
		tell = v.tell
	}
	for _, dir := range args {
		dir = filepath.Clean(dir)
		info, err := os.Stat(dir)
		if err == nil && !info.IsDir() {
			err = fmt.Errorf("%s is a file; give its directory, or look at it with kring log dump", dir)
		}
		if err != nil {
			return &failure{exitData, err}
		}
		places, err := placesIn(dir, tell)
		if err != nil {
			return v.end(&failure{exitData, err})
		}
		if isLogDir(dir) {
			v.logDirs = append(v.logDirs, dir)
		}
		v.places = append(v.places, places...)
	}
	for _, p := range v.places {
		entries, err := os.ReadDir(p.Dir)
		if err != nil {
			return v.end(&failure{exitData, err})
		}
		for _, e := range entries {
			if info, err := e.Info(); err == nil && filepath.Ext(e.Name()) == ".log" {
				total += info.Size()
			}
		}
	}
	v.bar = progress(total, "verifying")
	return nil
}

// placesIn are the partitions in a log dir, or the one whose directory it is.
func placesIn(dir string, tell func(segment.Finding)) ([]segment.Place, error) {
	o := reading(tell)
	if isLogDir(dir) {
		return segment.VerifyDir(dir, o)
	}
	p, err := segment.PlaceOf(dir, o)
	return []segment.Place{p}, err
}

// isLogDir tells a log dir from a partition's directory.
func isLogDir(dir string) bool {
	if logs, err := filepath.Glob(dir + "/" + strings.Repeat("[0-9]", 20) + ".log"); err == nil && len(logs) > 0 {
		return false
	}
	if _, err := os.Stat(dir + "/partition.metadata"); err == nil {
		return false
	}
	return true
}

func reading(tell func(segment.Finding)) segment.VerifyOptions {
	return segment.VerifyOptions{Open: openFile, List: listDir, Each: tell}
}

func listDir(dir string) ([]ring.Entry, error) {
	names, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var list []ring.Entry
	for _, d := range names {
		info, err := os.Stat(dir + "/" + d.Name()) // a partition may be a link to another disk
		if err != nil {
			info, err = d.Info()
		}
		if err == nil {
			list = append(list, ring.Entry{Name: d.Name(), Dir: info.IsDir(), Special: !info.IsDir() && !info.Mode().IsRegular(),
				Size: info.Size(), ModTime: info.ModTime()})
		}
	}
	slices.SortFunc(list, func(a, b ring.Entry) int { return strings.Compare(a.Name, b.Name) })
	return list, nil
}

func (v *inspection) verify(p segment.Place, tell func(segment.Finding)) (*segment.Health, error) {
	o := reading(tell)
	o.Running = v.used(filepath.Dir(p.Dir))
	o.Progress = func(n int64) {
		v.bytes += n
		v.bar.Add64(n)
	}
	return p.Verify(o)
}

func (v *inspection) tell(f segment.Finding) {
	if f.Harmless {
		if v.harmless++; v.quiet {
			return
		}
	} else {
		v.found++
	}
	if v.asJSON {
		b, err := json.Marshal(f)
		if err != nil {
			panic("daemon: a finding cannot be encoded: " + err.Error())
		}
		v.out.Write(append(b, '\n'))
		return
	}
	if f.Harmless && !v.verbose {
		v.notes.add(f)
		return
	}
	v.out.WriteString(findingLine(f))
}

// used says whether a broker uses a log dir.
func (v *inspection) used(dir string) bool {
	is, known := v.running[dir]
	if !known && !v.alone {
		if is = inUse(dir); v.running == nil {
			v.running = map[string]bool{}
		}
		v.running[dir] = is
	}
	return is
}

// inUse says whether a process holds the lock of a log dir.
func inUse(dir string) bool {
	f, err := os.Open(dir + "/.lock")
	if err != nil {
		return false
	}
	defer f.Close()
	lock := syscall.Flock_t{Type: syscall.F_WRLCK}
	return syscall.FcntlFlock(f.Fd(), syscall.F_GETLK, &lock) == nil && lock.Type != syscall.F_UNLCK
}

// notes are findings that do no harm, by kind: the first of each is shown.
type notes []struct {
	kind  string
	first segment.Finding
	n     int64
}

func (n *notes) add(f segment.Finding) {
	kind := strings.Map(func(r rune) rune { // numbers make no other kind
		if r >= '0' && r <= '9' {
			return -1
		}
		return r
	}, f.What) + "; " + f.Do
	for i := range *n {
		if x := &(*n)[i]; x.kind == kind {
			x.n++
			return
		}
	}
	*n = append(*n, struct {
		kind  string
		first segment.Finding
		n     int64
	}{kind, f, 1})
}

// lines are a line for each kind.
func (n notes) lines() (lines []string) {
	for _, x := range n {
		line := findingLine(x.first)
		if x.n > 1 {
			line = fmt.Sprintf("note: %d times, first in %s", x.n, strings.TrimPrefix(line, "note: "))
		}
		lines = append(lines, line)
	}
	return lines
}

func findingLine(f segment.Finding) string {
	where := f.File
	if f.Position >= 0 {
		where += fmt.Sprintf(" at position %d", f.Position)
	}
	note := ""
	if f.Harmless {
		note = "note: "
	}
	return fmt.Sprintf("%s%s: %s; %s\n", note, where, f.What, f.Do)
}

// end tells the sum and what to end with.
func (v *inspection) end(err error) error {
	if v.bar != nil {
		v.bar.Finish()
	}
	for _, line := range v.notes.lines() {
		v.out.WriteString(line)
	}
	if err == nil && !v.asJSON && v.sum == nil {
		fmt.Fprintf(v.out, "%s, %.1f MB read: %s, %s\n", count(int64(len(v.places)), "partition"), float64(v.bytes)/1e6,
			count(int64(v.found), "finding"), count(int64(v.harmless), "note"))
	}
	if err == nil && v.sum != nil {
		v.sum()
	}
	if e := v.out.Flush(); err == nil {
		err = e
	}
	if err == nil && v.found > 0 {
		err = &failure{exitFailed, errFound{v.found}}
	}
	return err
}
