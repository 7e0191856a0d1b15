package api

import (
	"fmt"
	"slices"
	"strings"

	"kring/daemon/config"
	"kring/replication/controller"
)

// rootLogger is the one logger there is: the broker's log. Kafka has one for each of its classes, and this one (KIP-412).
const rootLogger = "root"

// logLevels are Kafka's names of levels.
var logLevels = []string{"DEBUG", "ERROR", "FATAL", "INFO", "TRACE", "WARN"}

// loggers describes the loggers of a broker, which must be this one.
func (c *Context) loggers(broker string) ([]config.Entry, error) {
	if broker == "" {
		return nil, refuse("Broker id must not be empty")
	}
	if err := c.thisBroker("Broker", broker, ""); err != nil || c.Levels == nil {
		return nil, err
	}
	level := c.Levels.Level()
	return []config.Entry{{Name: rootLogger, Value: &level, Source: config.SourceLogger}}, nil
}

// checkLevels refuses levels that cannot be set.
func (c *Context) checkLevels(a *alteration) error {
	if err := c.thisBroker("Node", a.name, ""); err != nil {
		return err
	}
	for _, op := range a.Ops {
		known := c.Levels != nil && op.Name == rootLogger
		switch op.Kind {
		case controller.ConfigAppend:
			return refuse("APPEND operation is not allowed for the BROKER_LOGGER resource")
		case controller.ConfigSubtract:
			return refuse("SUBTRACT operation is not allowed for the BROKER_LOGGER resource")
		case controller.ConfigSet, controller.ConfigDelete:
			if !known {
				return &controller.Error{Kind: controller.InvalidConfig, Message: fmt.Sprintf("Logger %s does not exist!", op.Name)}
			}
			if op.Kind == controller.ConfigDelete {
				return refuse("Removing the log level of the root logger is not allowed")
			}
			if !slices.Contains(logLevels, *op.Value) {
				return &controller.Error{Kind: controller.InvalidConfig, Message: fmt.Sprintf("Cannot set the log level of %s to %s as it is "+
					"not a supported log level. Valid log levels are %s", op.Name, *op.Value, strings.Join(logLevels, ", "))}
			}
		default:
			return refuse("Unknown operation %d on logger %s", op.Kind, op.Name)
		}
	}
	return nil
}

// setLevels does what checkLevels has let through.
func (c *Context) setLevels(ops []controller.ConfigOp) {
	for _, op := range ops {
		c.Log.Info("log level set", "logger", op.Name, "level", *op.Value)
		c.Levels.SetLevel(*op.Value)
	}
}
