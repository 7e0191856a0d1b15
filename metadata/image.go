package metadata

import (
	"iter"
	"slices"
	"strings"
)

// Endpoint is where one of a broker's listeners can be reached.
type Endpoint struct {
	Listener string // listener name
	Protocol string // security protocol: PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL
	Host     string
	Port     int32
}

// Broker is a registered broker.
type Broker struct {
	ID        int32
	Epoch     BrokerEpoch
	Endpoints []Endpoint
	Rack      string // "" if unset
}

// Endpoint finds the endpoint of a listener.
func (b *Broker) Endpoint(listener string) (Endpoint, bool) {
	for _, e := range b.Endpoints {
		if e.Listener == listener {
			return e, true
		}
	}
	return Endpoint{}, false
}

// Partition is what is known of one partition. Its slices must not be changed.
type Partition struct {
	Leader          int32 // NoLeader if there is none
	LeaderEpoch     LeaderEpoch
	PartitionEpoch  PartitionEpoch
	ControllerEpoch ControllerEpoch // of the controller that wrote the state
	Recovering      bool            // the leader was elected uncleanly and has not recovered yet
	ISR             []int32
	Replicas        []int32
	Offline         []int32 // replicas on dead brokers or failed log dirs
}

// Topic is a topic; it and all in it are immutable.
type Topic struct {
	Name       string
	ID         TopicID // zero if it has none
	Partitions []Partition
	Config     Config // what /config/topics holds
}

// shards bounds what an edit of one topic copies.
const shards = 256

type nameShard struct {
	byName map[string]*Topic
	sorted []*Topic
}

// Image is a picture of the cluster at one moment. It is immutable: Edit makes the next one, which shares what did not
// change. The zero Image is an empty cluster without a controller; NewImage makes it.
type Image struct {
	ClusterID       string
	ControllerID    int32 // NoBroker if there is none
	ControllerEpoch ControllerEpoch
	FeatureEpoch    int64 // data version of /feature, -1 if absent

	brokers       []*Broker // by id
	brokerConfigs []brokerConfig
	names         [shards]*nameShard
	ids           [shards]map[TopicID]*Topic
	topics        int
	partitions    int
}

type brokerConfig struct {
	id     int32 // NoBroker for the defaults of all
	config Config
}

// NewImage is the picture of an empty cluster.
func NewImage() *Image { return &Image{ControllerID: NoBroker, FeatureEpoch: -1} }

func shardOf[T string | []byte](name T) int {
	h := uint32(2166136261)
	for i := 0; i < len(name); i++ {
		h = (h ^ uint32(name[i])) * 16777619
	}
	return int((h ^ h>>8 ^ h>>16 ^ h>>24) % shards)
}

// Topic finds a topic by name; nil if there is none.
func (m *Image) Topic(name string) *Topic {
	if s := m.names[shardOf(name)]; s != nil {
		return s.byName[name]
	}
	return nil
}

// TopicBytes is Topic for a name that is still in a request; it does not allocate.
func (m *Image) TopicBytes(name []byte) *Topic {
	if s := m.names[shardOf(name)]; s != nil {
		return s.byName[string(name)]
	}
	return nil
}

// TopicByID finds a topic by its id; nil if there is none.
func (m *Image) TopicByID(id TopicID) *Topic { return m.ids[id[15]][id] }

// Topics goes through all topics, in an order that depends on their names alone.
func (m *Image) Topics() iter.Seq[*Topic] {
	return func(yield func(*Topic) bool) {
		for _, s := range m.names {
			if s == nil {
				continue
			}
			for _, t := range s.sorted {
				if !yield(t) {
					return
				}
			}
		}
	}
}

// Changes gives the topics that are not the same in m as in old, each as it was and as it is; nil stands for absent. It looks only
// at the parts of the pictures that differ, so it is cheap for a picture made from old by an Edit.
func (m *Image) Changes(old *Image) iter.Seq2[*Topic, *Topic] {
	return func(yield func(was, is *Topic) bool) {
		for i, s := range m.names {
			before := old.names[i]
			if s == before {
				continue
			}
			if before != nil {
				for _, was := range before.sorted {
					if is := s.get(was.Name); is != was && !yield(was, is) {
						return
					}
				}
			}
			if s == nil {
				continue
			}
			for _, is := range s.sorted {
				if before.get(is.Name) == nil && !yield(nil, is) {
					return
				}
			}
		}
	}
}

func (s *nameShard) get(name string) *Topic {
	if s == nil {
		return nil
	}
	return s.byName[name]
}

// NumTopics and NumPartitions count.
func (m *Image) NumTopics() int { return m.topics }

// NumPartitions is the number of partitions of all topics.
func (m *Image) NumPartitions() int { return m.partitions }

// Brokers are the registered brokers by id; the slice must not be changed.
func (m *Image) Brokers() []*Broker { return m.brokers }

// Broker finds a registered broker; nil if it is not there.
func (m *Image) Broker(id int32) *Broker {
	if i, ok := m.findBroker(id); ok {
		return m.brokers[i]
	}
	return nil
}

func (m *Image) findBroker(id int32) (int, bool) {
	return slices.BinarySearchFunc(m.brokers, id, func(b *Broker, id int32) int { return int(b.ID) - int(id) })
}

// BrokerConfig is what is set dynamically for one broker, or with NoBroker for all.
func (m *Image) BrokerConfig(id int32) Config {
	for _, c := range m.brokerConfigs {
		if c.id == id {
			return c.config
		}
	}
	return nil
}

// Edit begins the next picture.
func (m *Image) Edit() *Edit {
	next := *m
	return &Edit{m: &next}
}

// Edit builds an Image from another. It copies a part when it is first changed and is of no use after Image.
type Edit struct {
	m         *Image
	ownNames  [shards]bool
	ownIDs    [shards]bool
	ownBroker bool
}

// Image ends the edit.
func (e *Edit) Image() *Image {
	m := e.m
	e.m = nil
	return m
}

// Cluster sets the cluster's id.
func (e *Edit) Cluster(id string) { e.m.ClusterID = id }

// Controller sets who the controller is.
func (e *Edit) Controller(id int32, epoch ControllerEpoch) {
	e.m.ControllerID, e.m.ControllerEpoch = id, epoch
}

// Features sets the epoch of /feature.
func (e *Edit) Features(epoch int64) { e.m.FeatureEpoch = epoch }

// Topic finds a topic in the picture as edited so far.
func (e *Edit) Topic(name string) *Topic { return e.m.Topic(name) }

// SetTopic puts a topic in, in place of the one of this name. t must not be changed any more.
func (e *Edit) SetTopic(t *Topic) {
	s := e.names(shardOf(t.Name))
	if old := s.byName[t.Name]; old != nil {
		e.forget(old)
		i := s.find(t.Name)
		s.sorted[i] = t
	} else {
		s.sorted = slices.Insert(s.sorted, s.find(t.Name), t)
	}
	s.byName[t.Name] = t
	if !t.ID.IsZero() {
		e.ids(int(t.ID[15]))[t.ID] = t
	}
	e.m.topics++
	e.m.partitions += len(t.Partitions)
}

// RemoveTopic takes a topic out.
func (e *Edit) RemoveTopic(name string) {
	old := e.m.Topic(name)
	if old == nil {
		return
	}
	e.forget(old)
	s := e.names(shardOf(name))
	delete(s.byName, name)
	i := s.find(name)
	s.sorted = slices.Delete(s.sorted, i, i+1)
}

func (e *Edit) forget(old *Topic) {
	if !old.ID.IsZero() && e.m.TopicByID(old.ID) == old {
		delete(e.ids(int(old.ID[15])), old.ID)
	}
	e.m.topics--
	e.m.partitions -= len(old.Partitions)
}

func (s *nameShard) find(name string) int {
	i, _ := slices.BinarySearchFunc(s.sorted, name, func(t *Topic, name string) int { return strings.Compare(t.Name, name) })
	return i
}

func (e *Edit) names(i int) *nameShard {
	if e.ownNames[i] {
		return e.m.names[i]
	}
	e.ownNames[i] = true
	next := &nameShard{byName: map[string]*Topic{}}
	if old := e.m.names[i]; old != nil {
		next.sorted = slices.Clone(old.sorted)
		for _, t := range old.sorted {
			next.byName[t.Name] = t
		}
	}
	e.m.names[i] = next
	return next
}

func (e *Edit) ids(i int) map[TopicID]*Topic {
	if !e.ownIDs[i] {
		e.ownIDs[i] = true
		next := make(map[TopicID]*Topic, len(e.m.ids[i])+1)
		for id, t := range e.m.ids[i] {
			next[id] = t
		}
		e.m.ids[i] = next
	}
	return e.m.ids[i]
}

// SetBroker puts a broker in, in place of the one with this id.
func (e *Edit) SetBroker(b *Broker) {
	e.brokers()
	if i, ok := e.m.findBroker(b.ID); ok {
		e.m.brokers[i] = b
	} else {
		e.m.brokers = slices.Insert(e.m.brokers, i, b)
	}
}

// RemoveBroker takes a broker out.
func (e *Edit) RemoveBroker(id int32) {
	e.brokers()
	if i, ok := e.m.findBroker(id); ok {
		e.m.brokers = slices.Delete(e.m.brokers, i, i+1)
	}
}

func (e *Edit) brokers() {
	if !e.ownBroker {
		e.ownBroker = true
		e.m.brokers = slices.Clone(e.m.brokers)
	}
}

// SetBrokerConfig sets the dynamic configuration of a broker, or with NoBroker of all.
func (e *Edit) SetBrokerConfig(id int32, c Config) {
	next := make([]brokerConfig, 0, len(e.m.brokerConfigs)+1)
	for _, old := range e.m.brokerConfigs {
		if old.id != id {
			next = append(next, old)
		}
	}
	e.m.brokerConfigs = append(next, brokerConfig{id, c})
}
