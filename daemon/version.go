package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// version is stamped by the Makefile: -ldflags "-X main.version=...".
var version = ""

func versionText() string {
	v := version
	if v == "" {
		v = "(not stamped)"
		if info, ok := debug.ReadBuildInfo(); ok {
			for _, s := range info.Settings {
				if s.Key == "vcs.revision" {
					v = s.Value
				}
			}
		}
	}
	return fmt.Sprintf("kring %s (%s, %s/%s)", v, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
