package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// The largest record read from standard input; a file given by name may be larger.
const lineBytesMax = 256 << 20

type producing struct {
	client
	partition  int32
	acks       string
	codec      string
	key        string
	separator  string
	delimiter  string
	headers    []string
	eachFile   bool
	emptyIsNil bool
	maxBytes   int32

	refused lastRefusal

	mu    sync.Mutex
	err   error
	at    *kgo.Record // what err is about
	count int64
	bytes int64
}

func produceCommand() *cobra.Command {
	p := &producing{}
	cmd := &cobra.Command{
		Use:   "produce TOPIC [FILE...]",
		Short: "Send records: the lines of standard input or of files, or whole files",
		Args:  atLeast(1),
		Example: `  echo hello | kring produce words
  printf 'k1:v1\nk2:v2\n' | kring produce words --key-separator : --header from=shell
  find . -name '*.go' | xargs kring produce sources --each-file --compression zstd`,
		RunE: func(cmd *cobra.Command, args []string) error { return p.run(cmd, args[0], args[1:]) },
	}
	p.flags(cmd)
	cmd.ValidArgsFunction = p.completeTopics(false)
	f := cmd.Flags()
	f.Int32VarP(&p.partition, "partition", "p", -1, "the partition; -1 lets the key, or chance, decide")
	f.StringVar(&p.acks, "acks", "all", "who must have a record before it counts: 0 (nobody), 1 (the leader), all")
	f.StringVarP(&p.codec, "compression", "z", "none", "none, gzip, snappy, lz4 or zstd")
	f.StringVarP(&p.key, "key", "k", "", "the key of every record")
	f.StringVarP(&p.separator, "key-separator", "K", "", "what stands between key and value in a line; none: lines have no key")
	f.StringVarP(&p.delimiter, "delimiter", "D", `\n`, `what ends a record; \n, \t, \0 and \xHH are understood`)
	f.StringArrayVarP(&p.headers, "header", "H", nil, "a header of every record, `name=value`")
	f.BoolVar(&p.eachFile, "each-file", false, "every FILE is one record, its key the name as given")
	f.BoolVar(&p.emptyIsNil, "empty-is-null", false, "an empty value is no value (a tombstone)")
	f.Int32Var(&p.maxBytes, "max-message-bytes", 1<<20, "the largest batch sent; the topic's max.message.bytes must allow it")
	completeFlag(cmd, "acks", "0", "1", "all")
	completeFlag(cmd, "compression", "none", "gzip", "snappy", "lz4", "zstd")
	return cmd
}

func (p *producing) options(topic string) ([]kgo.Opt, error) {
	opts := []kgo.Opt{kgo.DefaultProduceTopic(topic), kgo.ProducerBatchMaxBytes(p.maxBytes), kgo.RecordDeliveryTimeout(p.timeout),
		kgo.UnknownTopicRetries(2), kgo.AllowAutoTopicCreation(), kgo.MaxBufferedBytes(64 << 20)}
	switch p.acks {
	case "all", "-1":
	case "1":
		opts = append(opts, kgo.RequiredAcks(kgo.LeaderAck()), kgo.DisableIdempotentWrite())
	case "0":
		opts = append(opts, kgo.RequiredAcks(kgo.NoAck()), kgo.DisableIdempotentWrite())
	default:
		return nil, wrong("--acks %s is not valid; allowed: 0, 1 or all", p.acks)
	}
	codecs := map[string]kgo.CompressionCodec{"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(),
		"lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression()}
	codec, ok := codecs[p.codec]
	if !ok {
		return nil, wrong("--compression %s is not valid; allowed: none, gzip, snappy, lz4 or zstd", p.codec)
	}
	opts = append(opts, kgo.ProducerBatchCompression(codec), kgo.WithLogger(&p.refused))
	if p.partition >= 0 {
		opts = append(opts, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	}
	if p.maxBytes > 100<<20-1024 {
		opts = append(opts, kgo.BrokerMaxWriteBytes(p.maxBytes+1<<20))
	}
	return opts, nil
}

func (p *producing) run(cmd *cobra.Command, topic string, files []string) error {
	if p.eachFile && len(files) == 0 {
		return wrong("--each-file needs the names of files")
	}
	headers, err := headersOf(p.headers)
	if err != nil {
		return err
	}
	delimiter, err := unquote(p.delimiter)
	if err != nil || delimiter == "" {
		return wrong("--delimiter %q is not valid; allowed: one or more bytes", p.delimiter)
	}
	separator, err := unquote(p.separator)
	if err != nil {
		return wrong("--key-separator %q is not valid; allowed: bytes", p.separator)
	}
	opts, err := p.options(topic)
	if err != nil {
		return err
	}
	cl, err := p.open(opts...)
	if err != nil {
		return err
	}
	defer cl.Close()
	bar := progress(-1, "sending")
	send := func(key, value []byte) bool {
		_ = bar.Add(1)
		return p.send(cmd.Context(), cl, &kgo.Record{Key: key, Value: value, Headers: headers, Partition: max(p.partition, 0)})
	}
	err = p.read(cmd.InOrStdin(), files, delimiter, separator, send)
	if flushed := cl.Flush(cmd.Context()); err == nil {
		err = flushed
	}
	_ = bar.Finish()
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprintf(cmd.ErrOrStderr(), "%s, %s\n", count(p.count, "record"), count(p.bytes, "byte"))
	if p.err != nil {
		return explain(topic, p.reason(cmd.Context(), cl, topic), p.rule(cmd.Context(), cl, topic))
	}
	return err
}

// reason is what went wrong: a partition that is not there is known to the client library alone, which says it in its own terms; where time
// was up, it is why the broker would not have the records until then.
func (p *producing) reason(ctx context.Context, cl *kgo.Client, topic string) error {
	var known *kerr.Error
	if errors.As(p.err, &known) {
		return p.err
	}
	if last := p.refused.last.Load(); last != nil && errors.Is(p.err, kgo.ErrRecordTimeout) {
		return last
	}
	if p.partition < 0 {
		return p.err
	}
	topics, err := kadm.NewClient(cl).ListTopics(ctx, topic)
	if err != nil || topics[topic].Err != nil {
		return p.err
	}
	if _, there := topics[topic].Partitions[p.partition]; there {
		return p.err
	}
	return fmt.Errorf("there is no partition %d; the topic has %s, numbered from 0", p.partition,
		count(int64(len(topics[topic].Partitions)), "partition"))
}

// send hands a record to the client; false once one has failed.
func (p *producing) send(ctx context.Context, cl *kgo.Client, r *kgo.Record) bool {
	if p.emptyIsNil && len(r.Value) == 0 {
		r.Value = nil
	}
	cl.Produce(ctx, r, func(r *kgo.Record, err error) {
		p.mu.Lock()
		defer p.mu.Unlock()
		if err != nil {
			if p.err == nil {
				p.err, p.at = err, r
			}
			return
		}
		p.count++
		p.bytes += int64(len(r.Key) + len(r.Value))
	})
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err == nil
}

// read gives every record of the input to send, until it says false.
func (p *producing) read(stdin io.Reader, files []string, delimiter, separator string, send func(key, value []byte) bool) error {
	if len(files) == 0 {
		_, err := p.lines(stdin, delimiter, separator, send)
		return err
	}
	for _, name := range files {
		if p.eachFile {
			value, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			if !send([]byte(name), value) {
				return nil
			}
			continue
		}
		f, err := os.Open(name)
		if err != nil {
			return err
		}
		more, err := p.lines(f, delimiter, separator, send)
		f.Close()
		if err != nil || !more {
			return err
		}
	}
	return nil
}

func (p *producing) lines(r io.Reader, delimiter, separator string, send func(key, value []byte) bool) (more bool, err error) {
	scanner := bufio.NewScanner(r)
	scanner.Buffer(make([]byte, 64<<10), lineBytesMax)
	scanner.Split(splitter([]byte(delimiter)))
	for scanner.Scan() {
		key, value := []byte(p.key), bytes.Clone(scanner.Bytes())
		if p.key == "" {
			key = nil
		}
		if separator != "" {
			if before, after, ok := bytes.Cut(value, []byte(separator)); ok {
				key, value = before, after
			}
		}
		if value == nil {
			value = []byte{}
		}
		if !send(key, value) {
			return false, nil
		}
	}
	if err := scanner.Err(); errors.Is(err, bufio.ErrTooLong) {
		return false, fmt.Errorf("a record of more than %d bytes", lineBytesMax)
	} else {
		return true, err
	}
}

// splitter cuts at a delimiter of any length; a last record without one counts.
func splitter(delimiter []byte) bufio.SplitFunc {
	return func(data []byte, atEOF bool) (int, []byte, error) {
		if i := bytes.Index(data, delimiter); i >= 0 {
			return i + len(delimiter), data[:i], nil
		}
		if atEOF && len(data) > 0 {
			return len(data), data, nil
		}
		return 0, nil, nil
	}
}

func unquote(s string) (string, error) {
	if !strings.Contains(s, `\`) {
		return s, nil
	}
	s = strings.ReplaceAll(strings.ReplaceAll(s, `\0`, `\x00`), `"`, `\"`)
	return strconv.Unquote(`"` + s + `"`)
}

func headersOf(settings []string) ([]kgo.RecordHeader, error) {
	var headers []kgo.RecordHeader
	for _, s := range settings {
		name, value, ok := strings.Cut(s, "=")
		if !ok {
			return nil, wrong("--header %q is not valid; allowed: name=value", s)
		}
		headers = append(headers, kgo.RecordHeader{Key: name, Value: []byte(value)})
	}
	return headers, nil
}
