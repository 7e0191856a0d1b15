// Package embedded is a metadata.Store in this process: a tree in memory, kept in plain files of one directory by a
// checksummed log and snapshots of it, written through a ring.Loop.
//
// # Files
//
//	kring-store-<zxid>.snapshot  the whole tree after the change <zxid> (16 hex digits)
//	kring-store-<zxid>.log       the changes behind <zxid>
//	kring-store-....tmp          a snapshot that was not finished; removed at the next opening
//	kring-store-....damaged      bytes that an opening has set aside; nobody reads it
//	kring-store-....replaced-<n> a store that Replace has put aside; the last two are kept
//
// A log is a header and frames. A frame is what was written at once and made durable before any of its changes was
// answered, so only the last frame of the last log can be torn; a torn one was never answered and is cut. What a torn
// write cannot explain at the end of the last log is set aside in a file before it is cut off, and told of (damage.go). Anything else that
// does not add up is a *DamageError. Once a snapshot is durable what it makes superfluous is removed.
//
// # Promises
//
// A change is answered after it is durable. Changes asked for while a frame is being written share the next one. Answers and
// events come in the order of the calls. After a failed write or sync nothing is answered but ErrFenced, for good.
// Ephemeral nodes belong to one opening of the store. The whole tree is in memory.
package embedded
