// Package wire turns Kafka's bytes into Go and back: frames, request headers, error codes, the table of APIs and versions, and
// the two hot messages, Produce and Fetch, as views over the received bytes and encoders into the caller's.
//
// It is not for what a message means: no topic, partition or group is known here. All other messages are kmsg's; DecodeRequest
// and AppendResponse are the way to them, with the guards a server needs.
//
// Formats are those of Apache Kafka 3.9 (its protocol guide; KIP-482 flexible versions, KIP-896 minimums). Versions Supported
// does not name are refused.
//
// Ownership: views point into the body they were given and are valid as long as it is; encoders append to the caller's slice.
// Nothing here keeps state between calls, so any goroutine may call anything.
//
// Promises:
//   - Any bytes give a message or an error, never a panic.
//   - A count or length is compared with the bytes that remain before it is followed, looped over or allocated for.
//   - ProduceRequest and FetchRequest are validated whole by Parse, which allocates nothing; iterating them cannot fail.
//   - Bytes after the last field are ignored, as Kafka ignores them. Strings are handed on as they came: Kafka would put
//     U+FFFD for what is not UTF-8, so names are to be checked before they are stored.
package wire
