// Package suite pins the version of the public suite that the tests of the folder above build and run.
package suite

import _ "github.com/ThreeDotsLabs/watermill-kafka/v3/pkg/kafka"
