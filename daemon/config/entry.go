package config

// Source says where a value comes from; the numbers are DescribeConfigs'.
type Source int8

// The sources of DescribeConfigs.
const (
	SourceTopic         Source = 1
	SourceBroker        Source = 2 // dynamic, this broker
	SourceDefaultBroker Source = 3 // dynamic, every broker
	SourceStatic        Source = 4 // server.properties and overrides
	SourceDefault       Source = 5
	SourceLogger        Source = 6 // the level of a logger
)

// Type is a setting's type; the numbers are DescribeConfigs'.
type Type int8

// The types of DescribeConfigs.
const (
	Boolean Type = 1 + iota
	String
	Int
	Short
	Long
	Double
	List
	Class
	Password
)

// Entry is one row of a DescribeConfigs answer.
type Entry struct {
	Name      string
	Value     *string // nil: not set, or sensitive
	ReadOnly  bool
	Sensitive bool
	Source    Source
	Type      Type
	Synonyms  []Synonym // where a value could come from, first wins; the first is the effective one
	Doc       string
}

// Synonym is one place a value is set.
type Synonym struct {
	Name   string
	Value  *string
	Source Source
}
