package api

import "kring/daemon/server"

// dataState is what the data APIs keep per loop: pools, fetch sessions.
type dataState struct{}

// start is called once, before the first request.
func (d *dataState) start(c *Context) {}

func produce(c *Context, r *server.Request)              { panic("api: not built") }
func fetch(c *Context, r *server.Request)                { panic("api: not built") }
func listOffsets(c *Context, r *server.Request)          { panic("api: not built") }
func deleteRecords(c *Context, r *server.Request)        { panic("api: not built") }
func initProducerID(c *Context, r *server.Request)       { panic("api: not built") }
func offsetForLeaderEpoch(c *Context, r *server.Request) { panic("api: not built") }
