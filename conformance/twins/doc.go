// Package twins holds kring's files against Kafka's, byte by byte: a live Kafka 3.9 and kring are sent the same Produce,
// WriteTxnMarkers and DeleteRecords requests, stopped, killed, damaged and cleaned alike, and every file of both log dirs must be the
// same. It has tests only.
//
// A follower's truncation, which no request brings about in a broker that is alone, is Kafka's own log's (Truncate.java) and ours, on
// copies of the same files.
//
// What may differ stands in one table, differences (differences_test.go), by name and with its reason. Times of transaction markers
// and of append are the broker's own: they are replaced by their number before files are compared, wherever they stand.
//
// The test starts a real ZooKeeper and Kafka by ../peers, which needs java and maven, and fails, never skips, when a part is missing.
// TWINS=long (make twins) also has each recover the other's files; seeds and sizes are fixed.
package twins
