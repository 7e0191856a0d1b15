// Package config knows what may be set: every key of a Kafka 3.9 broker's server.properties and every topic setting, with
// type, default and valid values as Kafka has them, and our own keys, which all begin with "kring.".
//
// It reads Java properties, refuses what is malformed or cannot be honoured safely, warns once by name about the rest, and
// answers what DescribeConfigs asks. It does nothing with the settings: rooms get plain numbers from Config and Topic.
//
// A Config never changes once built; a dynamic change makes a new one (Config.With), so every loop may read one without a lock.
// Nothing here touches the disk but Load, which reads the one file it is given.
package config
