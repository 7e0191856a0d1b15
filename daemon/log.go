package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"syscall"

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
	var offsets, transactions bool
	var keys, values string
	cmd := &cobra.Command{
		Use:   "dump FILE|DIR...",
		Short: "Print segments, indexes and producer snapshots as Kafka's DumpLogSegments does",
		Long: `Print .log, .index, .timeindex, .txnindex and .snapshot files line by line as Kafka's DumpLogSegments does; what is wrong with
them goes to standard error. A directory stands for all such files in it. Files are only read; a running broker is not disturbed.
Records of a partition of __consumer_offsets are decoded: groups and the offsets they have committed. So are those of
__transaction_state: transactional ids, the state of each and the partitions it has written to.

Of Kafka's options, --print-data-log is --records, --key-decoder-class and --value-decoder-class are --key-decoder and --value-decoder,
--files are the arguments. --max-message-size is not needed. There is no --cluster-metadata-decoder and no --remote-log-metadata-decoder:
the logs they are for belong to KRaft and to tiered storage.
Exit status: 0 if every file could be read, whatever is wrong in it, 3 for wrong arguments, 7 if something could not be read.`,
		Args: atLeast(1),
		Example: `  kring log dump kring-data/words-0
  kring log dump --records kring-data/words-0/00000000000000000000.log
  kring log dump --key-decoder long --value-decoder hex kring-data/words-0
  kring log dump --verify-index-only kring-data/words-0 kring-data/words-1
  kring log dump --records kring-data/__consumer_offsets-12`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := decoders(&o, keys, values); err != nil {
				return err
			}
			switch {
			case offsets && transactions:
				return wrong("--offsets-decoder and --transaction-log-decoder exclude each other")
			case offsets:
				o.PrintDataLog, o.Parser = true, func(string) segment.Parser { return parseOffsets }
			case transactions:
				o.PrintDataLog, o.Parser = true, func(string) segment.Parser { return parseTransactions }
			}
			if o.MaxBytes < 0 {
				return wrong("--max-bytes is %d; allowed are 0 and more", o.MaxBytes)
			}
			files, err := logFiles(args)
			if err == nil {
				err = segment.Dump(cmd.OutOrStdout(), cmd.ErrOrStderr(), files, o)
			}
			if err != nil {
				return &failure{exitData, err}
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.BoolVarP(&o.PrintDataLog, "records", "r", false, "print every record with key, value and headers")
	f.BoolVar(&offsets, "offsets-decoder", false, "take every file for one of __consumer_offsets, and print its records")
	f.BoolVar(&transactions, "transaction-log-decoder", false, "take every file for one of __transaction_state, and print its records")
	f.StringVar(&keys, "key-decoder", "", "print every record, its key read as "+decoderNames)
	f.StringVar(&values, "value-decoder", "", "print every record, its value read as "+decoderNames)
	f.BoolVar(&o.DeepIteration, "deep-iteration", false, "print every record without key and value")
	f.BoolVar(&o.SkipMetadata, "skip-record-metadata", false, "print nothing of a record but key and value")
	f.Int64Var(&o.MaxBytes, "max-bytes", 0, "end each log before the batch that goes beyond so many bytes; 0: at its end")
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

// logFile is a file of a log, of which holes need not be read.
type logFile struct{ *os.File }

const seekData = 3 // lseek(2)'s SEEK_DATA

func (f logFile) NextData(at int64) (int64, error) {
	next, err := f.Seek(at, seekData)
	if errors.Is(err, syscall.ENXIO) { // there is none
		return f.Seek(0, io.SeekEnd)
	} else if err != nil {
		return at, nil // not every file system knows
	}
	return next, nil
}

// openFile opens a regular file: it does not wait for the other end of a pipe.
func openFile(name string) (io.ReaderAt, int64, error) {
	info, err := os.Stat(name)
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is no regular file", name)
	}
	if err != nil {
		return nil, 0, err
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, 0, err
	}
	if info, err = f.Stat(); err != nil {
		f.Close()
		return nil, 0, err
	}
	return logFile{f}, info.Size(), nil
}
