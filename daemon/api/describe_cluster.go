package api

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"kring/daemon/server"
	"kring/wire"
)

// brokers is the one endpoint type (KIP-919) served here.
const brokers = 1

var endpointTypes = map[int8]string{1: "BROKER", 2: "CONTROLLER"}

// describeCluster tells the cluster's id, its controller and its brokers.
func describeCluster(c *Context, r *server.Request) {
	m := kmsg.NewPtrDescribeClusterRequest()
	if !decode(r, m) {
		return
	}
	resp := kmsg.NewPtrDescribeClusterResponse()
	if r.Version >= 1 && m.EndpointType != brokers {
		resp.ErrorCode = int16(wire.MismatchedEndpointType)
		if m.EndpointType == 0 {
			resp.ErrorCode = int16(wire.InvalidRequest)
		}
		asked, ok := endpointTypes[m.EndpointType]
		if !ok {
			asked = "UNKNOWN"
		}
		resp.ErrorMessage = optional("The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type " + asked)
		resp.ControllerID = -1
		r.ReplyMessage(resp)
		return
	}
	image := c.Image()
	resp.ClusterID, resp.ControllerID, resp.EndpointType = c.ClusterID, image.ControllerID, brokers
	if m.IncludeClusterAuthorizedOperations {
		resp.ClusterAuthorizedOperations = clusterOperations
	}
	for _, b := range image.Brokers() {
		if e, ok := b.Endpoint(r.Conn.Listener); ok {
			rb := kmsg.NewDescribeClusterResponseBroker()
			rb.NodeID, rb.Host, rb.Port, rb.Rack = b.ID, e.Host, e.Port, optional(b.Rack)
			resp.Brokers = append(resp.Brokers, rb)
		}
	}
	r.ReplyMessage(resp)
}
