// Package suites runs the tests that client libraries bring for a broker of their own, against kring: each suite in the version that its
// folder's go.mod pins, against a fresh broker with the settings that the suite expects, result by result beside the list in testdata.
// It has tests only.
//
// A list names every test of its suite: "pass" must pass, "skip" skips itself, "out" is not run, for the reason that stands behind it;
// "again" must pass too, but may have a second try, because it races with itself on a busy machine, on Kafka as well. What one plain
// Kafka 3.9 passes is the mark: PEER=kafka runs the suites against it. A test that nobody listed, or that is gone, is a failure.
//
// SUITES names what to run, parted by commas: suites, "quick" (the default) for those that need a minute or so, "all". LOOPS does the
// same for the broker's loops (2 by default). kafka-go knows one address only, localhost:9092: that port must be free. RUN restricts a
// suite to the tests that a regular expression matches, while one looks for a cause.
package suites
