// Package storetest is the suite that every metadata.Store must pass: ZooKeeper's semantics, held against a naive model.
package storetest
