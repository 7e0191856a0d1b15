package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/go-zookeeper/zk"
	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"

	"kring/metadata"
	"kring/metadata/embedded"
)

// kafkaRoots are the nodes below which all is Kafka's.
var kafkaRoots = []string{"/admin", "/brokers", "/cluster", "/config", "/consumers", "/controller", "/controller_epoch",
	"/delegation_token", "/feature",
	"/isr_change_notification", "/kafka-acl", "/kafka-acl-changes", "/kafka-acl-extended", "/kafka-acl-extended-changes",
	"/latest_producer_id_block", "/log_dir_event_notification", "/migration"}

// Limits of what is under way at once: answers awaited, and operations and bytes of one multi (a ZooKeeper takes 1 MiB).
const (
	readsMost      = 32
	multiMost      = 500
	multiBytesMost = 400 << 10
)

// ensemble is a session with a ZooKeeper.
type ensemble struct {
	conn   *zk.Conn
	name   string // as given
	chroot string // "" or /a/b
	ctx    context.Context
}

// chrootOf cuts an ensemble's name into hosts and chroot, which is "" or a path that ZooKeeper would take: its client refuses the others,
// so Kafka has not run with one. A lone / is no chroot.
func chrootOf(name string) (hosts, chroot string, err error) {
	at := strings.IndexByte(name, '/')
	if at < 0 {
		return name, "", nil
	}
	if hosts, chroot = name[:at], name[at:]; chroot == "/" {
		return hosts, "", nil
	}
	for _, part := range strings.Split(chroot[1:], "/") {
		switch {
		case part == "":
			return "", "", wrong("--zookeeper %s is not valid: in the chroot %s two slashes follow each other, or it ends with one", name, chroot)
		case part == "." || part == "..":
			return "", "", wrong("--zookeeper %s is not valid: the chroot %s must not hold . or ..", name, chroot)
		case strings.ContainsFunc(part, unicode.IsControl) || !utf8.ValidString(part):
			return "", "", wrong("--zookeeper %q is not valid: the chroot must not hold control characters", name)
		}
	}
	return hosts, chroot, nil
}

type quietZooKeeper struct{}

func (quietZooKeeper) Printf(string, ...any) {}

// dialZooKeeper begins a session. It ends with ctx or close.
func dialZooKeeper(ctx context.Context, name string, timeout time.Duration) (*ensemble, error) {
	hosts, chroot, err := chrootOf(name)
	if err != nil {
		return nil, err
	}
	servers := strings.Split(hosts, ",")
	for i, s := range servers {
		servers[i] = strings.TrimSpace(s)
		if !strings.Contains(servers[i], ":") && servers[i] != "" {
			servers[i] += ":2181"
		}
		if host, port, err := net.SplitHostPort(servers[i]); err != nil || host == "" || port == "" {
			return nil, wrong("--zookeeper %s is not valid; allowed: host:port[,host:port...][/chroot]", name)
		}
	}
	var last atomic.Value
	dial := func(network, address string, _ time.Duration) (net.Conn, error) {
		c, err := net.DialTimeout(network, address, timeout)
		if err != nil {
			last.Store(err.Error())
		}
		return c, err
	}
	for until := time.Now().Add(timeout); ; {
		conn, events, err := zk.Connect(servers, sessionTimeout, zk.WithLogger(quietZooKeeper{}), zk.WithDialer(dial))
		if err != nil {
			return nil, wrong("--zookeeper %s: %w", name, err)
		}
		if hasSession(ctx, events, min(time.Until(until), sessionPatience)) {
			context.AfterFunc(ctx, conn.Close)
			go drainEvents(events)
			return &ensemble{conn, name, chroot, ctx}, nil
		}
		go conn.Close() // it takes its time without a session
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if time.Now().Before(until) {
			continue
		}
		cause, _ := last.Load().(string)
		if cause == "" {
			cause = "no session within " + timeout.String()
		}
		return nil, fmt.Errorf("no ZooKeeper answers at %s: %s; --zookeeper says where to look", name, cause)
	}
}

// A server that has just started may take a connection and never answer on it: another one is tried then.
const (
	sessionTimeout  = 10 * time.Second
	sessionPatience = 3 * time.Second
)

func hasSession(ctx context.Context, events <-chan zk.Event, patience time.Duration) bool {
	late := time.NewTimer(patience)
	defer late.Stop()
	for {
		select {
		case e := <-events:
			if e.State == zk.StateHasSession {
				return true
			}
		case <-ctx.Done():
			return false
		case <-late.C:
			return false
		}
	}
}

func drainEvents(events <-chan zk.Event) {
	for range events {
	}
}

func (e *ensemble) close() { e.conn.Close() }

// path is where a node of Kafka's stands.
func (e *ensemble) path(p string) string {
	if p == "/" && e.chroot != "" {
		return e.chroot
	}
	return e.chroot + p
}

// failed says what went wrong where.
func (e *ensemble) failed(what, path string, err error) error {
	switch {
	case e.ctx.Err() != nil:
		return e.ctx.Err()
	case errors.Is(err, zk.ErrNoAuth):
		return fmt.Errorf("ZooKeeper %s: %s is protected by an ACL; Kafka's zookeeper-security-migration --zookeeper.acl=unsecure takes it off",
			e.name, path)
	}
	return fmt.Errorf("ZooKeeper %s: %s %s: %w", e.name, what, path, err)
}

func stat(st *zk.Stat) metadata.Stat {
	return metadata.Stat{Czxid: metadata.Zxid(st.Czxid), Mzxid: metadata.Zxid(st.Mzxid), Pzxid: metadata.Zxid(st.Pzxid), Ctime: st.Ctime,
		Mtime: st.Mtime, Version: st.Version, Cversion: st.Cversion, Aversion: st.Aversion,
		EphemeralOwner: metadata.SessionID(st.EphemeralOwner), DataLength: st.DataLength, NumChildren: st.NumChildren}
}

// visit reads the ensemble's tree, once no broker is registered there; whoever gets no error closes it.
func (h *handover) visit(cmd *cobra.Command) (e *ensemble, nodes []embedded.Node, foreign []string, err error) {
	if e, err = dialZooKeeper(cmd.Context(), h.zooKeeper, h.timeout); err != nil {
		return nil, nil, nil, err
	}
	if err = e.abandoned(h.wait); err == nil {
		nodes, foreign, err = e.read()
	}
	if err != nil {
		e.close()
	}
	return e, nodes, foreign, err
}

// read reads all that is Kafka's, in the order of paths, and the root; foreign are the other nodes below the root. A tree that changes
// meanwhile is refused.
func (e *ensemble) read() (nodes []embedded.Node, foreign []string, err error) {
	names, st, err := e.conn.Children(e.path("/"))
	if errors.Is(err, zk.ErrNoNode) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, e.failed("reading", e.path("/"), err)
	}
	nodes = append(nodes, embedded.Node{Path: "/", Data: []byte{}, Stat: stat(st)})
	var level []string
	for _, name := range names {
		switch path := "/" + name; {
		case slices.Contains(kafkaRoots, path):
			level = append(level, path)
		case path != "/zookeeper" || e.chroot != "":
			foreign = append(foreign, path)
		}
	}
	bar := progress(-1, "nodes read")
	defer bar.Finish()
	for len(level) > 0 {
		slices.Sort(level)
		got, below, err := e.readLevel(level, bar)
		if err != nil {
			return nil, nil, err
		}
		nodes, level = append(nodes, got...), below
	}
	slices.SortFunc(nodes, func(a, b embedded.Node) int { return strings.Compare(a.Path, b.Path) })
	slices.Sort(foreign)
	return nodes, foreign, nil
}

// readLevel reads nodes, several at a time, and says what is below them.
func (e *ensemble) readLevel(paths []string, bar *progressbar.ProgressBar) (nodes []embedded.Node, below []string, err error) {
	nodes = make([]embedded.Node, len(paths))
	children, errs := make([][]string, len(paths)), make([]error, len(paths))
	var wg sync.WaitGroup
	turns := make(chan struct{}, readsMost)
	for i, path := range paths {
		turns <- struct{}{}
		wg.Go(func() {
			nodes[i], children[i], errs[i] = e.readNode(path)
			<-turns
		})
	}
	wg.Wait()
	for i, path := range paths {
		if errs[i] != nil {
			return nil, nil, errs[i]
		}
		for _, name := range children[i] {
			below = append(below, path+"/"+name)
		}
	}
	_ = bar.Add(len(paths))
	return nodes, below, nil
}

func (e *ensemble) readNode(path string) (n embedded.Node, children []string, err error) {
	at := e.path(path)
	data, st, err := e.conn.Get(at)
	if err == nil && st.NumChildren > 0 {
		children, _, err = e.conn.Children(at)
	}
	if errors.Is(err, zk.ErrNoNode) {
		return n, nil, fmt.Errorf("ZooKeeper %s changes while it is read: %s is gone; stop what writes to it", e.name, at)
	}
	if err == nil && strings.Count(path, "/") <= 2 { // Kafka protects all nodes of a kind alike
		err = e.unprotected(at)
	}
	if err != nil {
		return n, nil, e.failed("reading", at, err)
	}
	return embedded.Node{Path: path, Data: data, Stat: stat(st)}, children, nil
}

// unprotected is zk.ErrNoAuth for a node whose ACL says more than that everybody may do everything: it would be lost.
func (e *ensemble) unprotected(at string) error {
	acl, _, err := e.conn.GetACL(at)
	if err == nil && (len(acl) != 1 || acl[0].Scheme != "world" || acl[0].Perms != zk.PermAll) {
		err = zk.ErrNoAuth
	}
	return err
}

// abandoned waits until no broker and no controller is registered, and refuses if one still is when the time is over.
func (e *ensemble) abandoned(wait time.Duration) error {
	late := time.NewTimer(wait)
	defer late.Stop()
	for {
		ids, _, idsChange, err := e.conn.ChildrenW(e.path(metadata.PathBrokerIDs))
		if err != nil && !errors.Is(err, zk.ErrNoNode) {
			return e.failed("reading", e.path(metadata.PathBrokerIDs), err)
		}
		office, _, officeChange, err := e.conn.ExistsW(e.path(metadata.PathController))
		if err != nil {
			return e.failed("reading", e.path(metadata.PathController), err)
		}
		if len(ids) == 0 && !office {
			return nil
		}
		change := idsChange
		if len(ids) == 0 {
			change = officeChange
		}
		select {
		case <-change:
			continue
		case <-e.ctx.Done():
			return e.ctx.Err()
		case <-late.C:
		}
		return e.inUse(ids)
	}
}

// inUse names who is still registered.
func (e *ensemble) inUse(ids []string) error {
	who := "a controller is"
	if len(ids) > 0 {
		slices.Sort(ids)
		who = "broker " + ids[0]
		if data, _, err := e.conn.Get(e.path(metadata.PathBrokerIDs + "/" + ids[0])); err == nil {
			if r, err := metadata.DecodeRegistration(data); err == nil && len(r.Endpoints) > 0 {
				who += " (" + metadata.JoinHostPort(r.Endpoints[0].Host, r.Endpoints[0].Port) + ")"
			}
		}
		if who += " is"; len(ids) > 1 {
			who = "brokers " + strings.Join(ids, ", ") + " are"
		}
	}
	return fmt.Errorf("%s still registered in ZooKeeper %s: stop what runs there; what was killed goes when its session ends "+
		"(zookeeper.session.timeout.ms), --wait 30s waits for that", who, e.name)
}
