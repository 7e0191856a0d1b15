package suites

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"kring/conformance/stage"
)

// besideToxiproxy gives Sarama's tests what they want between them and the broker: a toxiproxy whose proxies are named kafka1 and on.
// They are written for five brokers on fixed ports and topics with three replicas; a copy of their source has one broker, its port and
// one replica in these three places of one file, and nothing else of it is changed.
func besideToxiproxy(t *testing.T, s *suite, b *broker) (string, string) {
	out, door := t.TempDir(), stage.FreeAddr(t)
	dir := out + "/source"
	if err := os.CopyFS(dir, os.DirFS(s.folder(t))); err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(b.addr)
	file := dir + "/functional_test.go"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []struct{ old, new string }{
		{"i <= 5", "i <= 1"}, {"29090+i", port}, {"ReplicationFactor: 3", "ReplicationFactor: 1"},
	} {
		if !strings.Contains(string(text), r.old) {
			t.Fatalf("%s has no %q", file, r.old)
		}
		text = []byte(strings.ReplaceAll(string(text), r.old, r.new))
	}
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	s.golang(t, "", "build", "-o", out+"/toxiproxy", "github.com/Shopify/toxiproxy/v2/cmd/server")
	host, doorPort, _ := net.SplitHostPort(door)
	cmd := exec.Command(out+"/toxiproxy", "-host", host, "-port", doorPort)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	proxy := fmt.Sprintf(`{"name":"kafka1","listen":%q,"upstream":%q,"enabled":true}`, b.addr, b.host)
	for until := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		r, err := http.Post("http://"+door+"/proxies", "application/json", strings.NewReader(proxy))
		if err == nil {
			r.Body.Close()
			if r.StatusCode == http.StatusCreated {
				break
			}
			err = fmt.Errorf("%s", r.Status)
		}
		if time.Now().After(until) {
			t.Fatalf("toxiproxy: %v", err)
		}
	}
	b.env = []string{"TOXIPROXY_ADDR=http://" + door, "KAFKA_VERSION=3.9.0"}
	return dir, dir
}

// besideTestconf tells confluent-kafka-go's tests, in the file that they read in their folder, where the broker is.
func besideTestconf(t *testing.T, _ *suite, b *broker) (string, string) {
	dir := t.TempDir()
	conf, _ := json.Marshal(map[string]any{"Brokers": b.addr, "TopicName": "test", "GroupID": "testgroup", "PerfMsgCount": 1000, "PerfMsgSize": 100})
	if err := os.WriteFile(dir+"/testconf.json", conf, 0o600); err != nil {
		t.Fatal(err)
	}
	return dir, ""
}
