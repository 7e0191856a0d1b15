package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"kring/metadata/embedded"
	"kring/segment"
)

func logCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "log",
		Short: "Print, verify and repair the files of logs",
		Args:  cobra.ArbitraryArgs,
		Example: `  kring log dump kring-data/words-0 --records
  kring log verify kring-data
  kring log repair --dry-run kring-data`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return wrong("there is no command %q; kring log --help lists them", "log "+args[0])
			}
			return cmd.Help()
		},
	}
	cmd.AddCommand(dumpCommand(), verifyCommand(), repairCommand())
	return cmd
}

func dumpCommand() *cobra.Command {
	o := segment.DumpOptions{Open: openFile, Parser: parserOf}
	offsets := false
	cmd := &cobra.Command{
		Use:   "dump FILE|DIR...",
		Short: "Print segments, indexes and producer snapshots as Kafka's DumpLogSegments does",
		Long: `Print .log, .index, .timeindex, .txnindex and .snapshot files as Kafka's DumpLogSegments does.
A directory stands for all such files in it. Files are only read; a running broker is not disturbed.
Records of a partition of __consumer_offsets are decoded: groups and the offsets they have committed.`,
		Args: atLeast(1),
		Example: `  kring log dump kring-data/words-0
  kring log dump --records kring-data/words-0/00000000000000000000.log
  kring log dump --verify-index-only kring-data/words-0 kring-data/words-1
  kring log dump --records kring-data/__consumer_offsets-12`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if offsets {
				o.PrintDataLog, o.Parser = true, func(string) segment.Parser { return parseOffsets }
			}
			files, err := logFiles(args)
			if err != nil {
				return err
			}
			out := bufio.NewWriterSize(cmd.OutOrStdout(), 64<<10)
			err = segment.Dump(out, files, o)
			if flushed := out.Flush(); err == nil {
				err = flushed
			}
			return err
		},
	}
	f := cmd.Flags()
	f.BoolVarP(&o.PrintDataLog, "records", "r", false, "print every record with key, value and headers")
	f.BoolVar(&offsets, "offsets-decoder", false, "take every file for one of __consumer_offsets, and print its records")
	f.BoolVar(&o.DeepIteration, "deep-iteration", false, "print every record without key and value")
	f.BoolVar(&o.IndexSanity, "index-sanity-check", false, "only check that indexes are whole")
	f.BoolVar(&o.VerifyIndexOnly, "verify-index-only", false, "print only what is wrong with an index")
	return cmd
}

var logSuffixes = []string{".log", ".index", ".timeindex", ".txnindex", ".snapshot"}

// logFiles puts the files of a directory in its place.
func logFiles(args []string) ([]string, error) {
	var files []string
	for _, a := range args {
		info, err := os.Stat(a)
		if err != nil {
			return nil, err
		}
		if !info.IsDir() {
			files = append(files, a)
			continue
		}
		entries, err := os.ReadDir(a)
		if err != nil {
			return nil, err
		}
		before := len(files)
		for _, e := range entries {
			if !e.IsDir() && slices.Contains(logSuffixes, filepath.Ext(e.Name())) && !embedded.IsFile(e.Name()) {
				files = append(files, filepath.Join(a, e.Name()))
			}
		}
		if len(files) == before {
			return nil, fmt.Errorf("%s holds no file of a log; a partition's are in <log dir>/<topic>-<partition>", a)
		}
	}
	return files, nil
}

func openFile(name string) (io.ReaderAt, int64, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, 0, err
	}
	return f, info.Size(), nil
}
