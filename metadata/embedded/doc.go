// Package embedded is a metadata.Store in this process: a tree in memory, kept in plain files of one directory by a
// checksummed log and snapshots of it, written through a ring.Loop.
package embedded
