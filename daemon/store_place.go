package main

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"kring/metadata/embedded"
)

// misplaced refuses log dirs of which another than the first has a store: the first's would be served, or made, and what only the other
// knows would be forgotten without a word. key is what names the dirs, whose order decides. Nothing is opened or locked: the dirs stay as
// they are. A dir that cannot be read is passed over, as whoever opens it says what is wrong.
func misplaced(dirs []string, key string) error {
	have := storeDirs(dirs)
	switch {
	case len(have) == 0 || len(have) == 1 && have[0] == dirs[0]:
		return nil
	case len(have) == 1:
		return &failure{exitData, fmt.Errorf("the store, kring-store-*, is in log dir %s, not in %s, which is the first: put %s first in %s, "+
			"or move %s/kring-store-* to %s", have[0], dirs[0], have[0], key, have[0], dirs[0])}
	}
	var each []string
	for _, dir := range have {
		text := "which cannot be read"
		if nodes, err := storeIn(dir); err == nil && nodes == nil {
			text = "of which the tree is gone"
		} else if err == nil {
			text = storeText(nodes)
		}
		each = append(each, "that in "+dir+" "+text)
	}
	return &failure{exitData, fmt.Errorf("%d log dirs have a store, kring-store-*, where only the first log dir's is served: %s: put the one "+
		"whose store goes on first in %s, and move kring-store-* out of the others", len(have), strings.Join(each, ", "), key)}
}

// storeDirs are those of the dirs that have a store or a part of one, each once, whatever its names.
func storeDirs(dirs []string) (have []string) {
	var seen []os.FileInfo
	for _, dir := range dirs {
		info, err := os.Stat(dir)
		if err != nil || slices.ContainsFunc(seen, func(o os.FileInfo) bool { return os.SameFile(o, info) }) {
			continue
		}
		seen = append(seen, info)
		entries, err := os.ReadDir(dir)
		if err == nil && slices.ContainsFunc(entries, func(e os.DirEntry) bool { return !e.IsDir() && embedded.InUse(e.Name()) }) {
			have = append(have, dir)
		}
	}
	return have
}
