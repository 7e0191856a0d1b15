package bench

import (
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// The versions of the group requests: Kafka since 2.4, but OffsetFetch, which asks for many groups at once since 3.0.
const (
	findVersion        = 3
	joinVersion        = 7
	syncVersion        = 5
	heartbeatVersion   = 4
	leaveVersion       = 4
	commitVersion      = 8
	fetchOffsetVersion = 8
)

// What a client of a group does by default (librdkafka, the Java client): seconds are of the client's heartbeat thread.
const (
	sessionTimeout   = 45 * time.Second
	rebalanceTimeout = 300 * time.Second
	heartbeatEvery   = 3 * time.Second
)

// The answers a client waits on, or begins anew after.
const (
	codeLoading        = 14
	codeUnavailable    = 15
	codeNotCoordinator = 16
	codeIllegalGen     = 22
	codeUnknownMember  = 25
	codeRebalancing    = 27
	codeMemberIDNeeded = 79
)

func (o *Options) checkGroups() error {
	switch {
	case o.Addr == "":
		return errors.New("bench: no broker address")
	case o.Topic == "":
		return errors.New("bench: no name for the groups")
	case o.Groups < 1 || o.Members < 1:
		return fmt.Errorf("bench: groups (%d) and members of each (%d) must be at least 1", o.Groups, o.Members)
	}
	return nil
}

func (o *Options) group(i int) string { return fmt.Sprintf("%s-%05d", o.Topic, i) }

// coordinated waits until the broker has made its offsets topic and coordinates every group.
func (o *Options) coordinated() error {
	c, err := dial(o.Addr)
	if err != nil {
		return err
	}
	defer c.Close()
	for until := time.Now().Add(readyMax); ; time.Sleep(5 * time.Millisecond) {
		req := kmsg.NewPtrFindCoordinatorRequest()
		req.Version, req.CoordinatorKey = findVersion, o.group(0)
		resp, err := c.do(req)
		if err != nil {
			return err
		}
		code := resp.(*kmsg.FindCoordinatorResponse).ErrorCode
		if code == 0 {
			return nil
		}
		if code != codeUnavailable || time.Now().After(until) {
			return &codeError{"find the coordinator of " + req.CoordinatorKey, code}
		}
	}
}

// seat is a member of a group on a connection of its own.
type seat struct {
	conn       *conn
	group      string
	id         string
	generation int32
	others     []string // members of the generation; the leader alone knows them
}

// take joins and gets an assignment, beginning anew as often as the group does.
func (s *seat) take() error {
	for {
		again, err := s.join()
		if err == nil && !again {
			again, err = s.sync()
		}
		if err != nil || !again {
			return err
		}
	}
}

func (s *seat) join() (again bool, err error) {
	req := kmsg.NewPtrJoinGroupRequest()
	req.Version = joinVersion
	req.Group, req.MemberID, req.ProtocolType = s.group, s.id, "consumer"
	req.SessionTimeoutMillis, req.RebalanceTimeoutMillis = int32(sessionTimeout.Milliseconds()), int32(rebalanceTimeout.Milliseconds())
	meta := kmsg.NewConsumerMemberMetadata()
	meta.Topics = []string{s.group}
	p := kmsg.NewJoinGroupRequestProtocol()
	p.Name, p.Metadata = "range", meta.AppendTo(nil)
	req.Protocols = append(req.Protocols, p)
	resp, err := s.conn.do(req)
	if err != nil {
		return false, err
	}
	r := resp.(*kmsg.JoinGroupResponse)
	switch r.ErrorCode {
	case 0:
		s.id, s.generation, s.others = r.MemberID, r.Generation, nil
		for _, m := range r.Members {
			s.others = append(s.others, m.MemberID)
		}
		return false, nil
	case codeMemberIDNeeded:
		s.id = r.MemberID
		return true, nil
	case codeUnknownMember:
		s.id = ""
		return true, nil
	}
	return s.later("join", r.ErrorCode)
}

// later waits a moment for a coordinator that is not there yet.
func (s *seat) later(what string, code int16) (again bool, err error) {
	switch code {
	case codeLoading, codeUnavailable, codeNotCoordinator:
		time.Sleep(20 * time.Millisecond)
		return true, nil
	case codeRebalancing, codeIllegalGen, codeUnknownMember:
		return true, nil
	}
	return false, &codeError{what + " group " + s.group, code}
}

func (s *seat) sync() (again bool, err error) {
	req := kmsg.NewPtrSyncGroupRequest()
	req.Version = syncVersion
	req.Group, req.Generation, req.MemberID = s.group, s.generation, s.id
	req.ProtocolType, req.Protocol = kmsg.StringPtr("consumer"), kmsg.StringPtr("range")
	for i, id := range s.others {
		t := kmsg.NewConsumerMemberAssignmentTopic()
		t.Topic, t.Partitions = s.group, []int32{int32(i)}
		plan := kmsg.NewConsumerMemberAssignment()
		plan.Topics = append(plan.Topics, t)
		a := kmsg.NewSyncGroupRequestGroupAssignment()
		a.MemberID, a.MemberAssignment = id, plan.AppendTo(nil)
		req.GroupAssignment = append(req.GroupAssignment, a)
	}
	resp, err := s.conn.do(req)
	if err != nil {
		return false, err
	}
	r := resp.(*kmsg.SyncGroupResponse)
	if r.ErrorCode != 0 {
		return s.later("sync", r.ErrorCode)
	}
	if len(r.MemberAssignment) == 0 {
		return false, fmt.Errorf("bench: a member of %s is assigned nothing", s.group)
	}
	return false, nil
}

func (s *seat) heartbeatFrame() []byte {
	req := kmsg.NewPtrHeartbeatRequest()
	req.Version = heartbeatVersion
	req.Group, req.Generation, req.MemberID = s.group, s.generation, s.id
	return encode(req, 1)
}

// heartbeat sends a frame of heartbeatFrame and returns the answer's code.
func (s *seat) heartbeat(frame []byte) (int16, error) {
	if _, err := s.conn.Write(frame); err != nil {
		return 0, err
	}
	b, err := s.conn.answer()
	if err != nil {
		return 0, err
	}
	// correlation id, no tags, throttle time, code, no tags
	if len(b) != 12 {
		return 0, fmt.Errorf("bench: an answer to Heartbeat of %d bytes", len(b))
	}
	return int16(b[9])<<8 | int16(b[10]), nil
}

func (s *seat) leave() error {
	req := kmsg.NewPtrLeaveGroupRequest()
	req.Version, req.Group = leaveVersion, s.group
	m := kmsg.NewLeaveGroupRequestMember()
	m.MemberID = s.id
	req.Members = append(req.Members, m)
	_, err := s.conn.do(req)
	return err
}
