package main

import (
	"strings"
	"testing"
)

// TestChrootIsOneZooKeeperTakes: what ZooKeeper's own client refuses as a chroot (PathUtils.validatePath) is refused by name, and not made
// another path, below which another cluster may lie.
func TestChrootIsOneZooKeeperTakes(t *testing.T) {
	for name, want := range map[string]string{"h:1": "", "h:1/": "", "h:1,g:2/a": "/a", "h:1/kr/a.b": "/kr/a.b", "h:1/...": "/..."} {
		hosts, chroot, err := chrootOf(name)
		if at := strings.IndexByte(name+"/", '/'); err != nil || chroot != want || hosts != name[:at] {
			t.Errorf("%s: %s %s %v", name, hosts, chroot, err)
		}
	}
	for _, name := range []string{"h:1//", "h:1/a/b//", "h:1/a/", "h:1//a", "h:1/a//b", "h:1/kr/../x", "h:1/./x", "h:1/..", "h:1/a\x00b", "h:1/\x1f"} {
		_, _, err := chrootOf(name)
		if statusOf(err) != exitArguments || !strings.Contains(err.Error(), "chroot") {
			t.Errorf("%q: %v", name, err)
		}
	}
	for _, command := range []string{"import", "export"} {
		r := kring(t, "", "store", command, "--zookeeper", "localhost:1/kr/../x", "--log-dir", t.TempDir())
		if r.status != exitArguments || !strings.Contains(r.errOut, "the chroot /kr/../x must not hold . or ..") {
			t.Errorf("%s: %+v", command, r)
		}
	}
}
