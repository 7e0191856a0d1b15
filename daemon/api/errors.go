package api

import (
	"errors"
	"io/fs"

	"kring/coordinator"
	"kring/replication"
	"kring/replication/controller"
	"kring/segment"
	"kring/wire"
	"kring/wire/batch"
)

// kinds are the codes of the controller's refusals.
var kinds = map[controller.Kind]wire.Code{
	controller.UnknownServerError:       wire.UnknownServerError,
	controller.NotController:            wire.NotController,
	controller.TimedOut:                 wire.RequestTimedOut,
	controller.TopicExists:              wire.TopicAlreadyExists,
	controller.UnknownTopic:             wire.UnknownTopicOrPartition,
	controller.UnknownTopicID:           wire.UnknownTopicID,
	controller.InvalidTopicName:         wire.InvalidTopicException,
	controller.InvalidPartitions:        wire.InvalidPartitions,
	controller.InvalidReplicationFactor: wire.InvalidReplicationFactor,
	controller.InvalidReplicaAssignment: wire.InvalidReplicaAssignment,
	controller.InvalidConfig:            wire.InvalidConfig,
	controller.InvalidRequest:           wire.InvalidRequest,
	controller.PolicyViolation:          wire.PolicyViolation,
	controller.TopicDeletionDisabled:    wire.TopicDeletionDisabled,
	controller.ReassignmentInProgress:   wire.ReassignmentInProgress,
	controller.BrokerNotAvailable:       wire.BrokerNotAvailable,

	controller.UnknownPartition:            wire.UnknownTopicOrPartition,
	controller.ElectionNotNeeded:           wire.ElectionNotNeeded,
	controller.PreferredLeaderNotAvailable: wire.PreferredLeaderNotAvailable,
	controller.EligibleLeadersNotAvailable: wire.EligibleLeadersNotAvailable,
	controller.NoReassignmentInProgress:    wire.NoReassignmentInProgress,
	controller.StorageError:                wire.KafkaStorageError,
}

// refusals are the codes of the other rooms' errors.
var refusals = []struct {
	err  error
	code wire.Code
}{
	{replication.ErrNotLeader, wire.NotLeaderOrFollower},
	{replication.ErrFencedEpoch, wire.FencedLeaderEpoch},
	{replication.ErrUnknownEpoch, wire.UnknownLeaderEpoch},
	{replication.ErrOffline, wire.KafkaStorageError},
	{replication.ErrNotEnoughReplicas, wire.NotEnoughReplicas},
	{replication.ErrNotEnoughReplicasAfterAppend, wire.NotEnoughReplicasAfterAppend},
	{replication.ErrTimedOut, wire.RequestTimedOut},
	{replication.ErrOutOfRange, wire.OffsetOutOfRange},

	{segment.ErrOutOfRange, wire.OffsetOutOfRange},
	{segment.ErrOutOfOrder, wire.OutOfOrderSequenceNumber},
	{segment.ErrProducerFenced, wire.InvalidProducerEpoch},
	{segment.ErrTxnState, wire.InvalidTxnState},
	{segment.ErrCoordinatorFenced, wire.TransactionCoordinatorFenced},
	{segment.ErrTooLarge, wire.RecordListTooLarge},
	{segment.ErrCorrupt, wire.CorruptMessage},
	{segment.ErrMalformed, wire.CorruptMessage},
	{segment.ErrOffline, wire.KafkaStorageError},
	{segment.ErrNoSpace, wire.KafkaStorageError},
	{segment.ErrClosed, wire.NotLeaderOrFollower},

	{coordinator.ErrRebalancing, wire.RebalanceInProgress},
	{coordinator.ErrLoading, wire.CoordinatorLoadInProgress},
	{coordinator.ErrNotCoordinator, wire.NotCoordinator},
	{coordinator.ErrUnavailable, wire.CoordinatorNotAvailable},
	{coordinator.ErrTimedOut, wire.RequestTimedOut},
	{coordinator.ErrUnknownMember, wire.UnknownMemberID},
	{coordinator.ErrIllegalGeneration, wire.IllegalGeneration},
	{coordinator.ErrFencedInstance, wire.FencedInstanceID},
	{coordinator.ErrMemberIDRequired, wire.MemberIDRequired},
	{coordinator.ErrGroupFull, wire.GroupMaxSizeReached},
	{coordinator.ErrInconsistentProtocol, wire.InconsistentGroupProtocol},
	{coordinator.ErrSessionTimeout, wire.InvalidSessionTimeout},
	{coordinator.ErrInvalidGroup, wire.InvalidGroupID},
	{coordinator.ErrNotEmpty, wire.NonEmptyGroup},
	{coordinator.ErrNotFound, wire.GroupIDNotFound},
	{coordinator.ErrSubscribed, wire.GroupSubscribedToTopic},
	{coordinator.ErrMetadataTooLarge, wire.OffsetMetadataTooLarge},
	{coordinator.ErrCommitTooLarge, wire.InvalidCommitOffsetSize},
	{coordinator.ErrUnstableOffset, wire.UnstableOffsetCommit},
	{coordinator.ErrUnknown, wire.UnknownServerError},

	{batch.ErrCorrupt, wire.CorruptMessage},
	{batch.ErrInvalid, wire.InvalidRecord},
	{batch.ErrTimestamp, wire.InvalidTimestamp},
	{batch.ErrTooLarge, wire.MessageTooLarge},
	{batch.ErrCodec, wire.UnsupportedCompressionType},
	{batch.ErrLimit, wire.MessageTooLarge},
}

// codeOf is Kafka's code for an error of any room; one of the disk that none has named is KafkaStorageError, any other
// UnknownServerError.
func codeOf(err error) wire.Code {
	if err == nil {
		return wire.None
	}
	var refused *controller.Error
	if errors.As(err, &refused) {
		return kinds[refused.Kind]
	}
	var code wire.Code
	if errors.As(err, &code) {
		return code
	}
	for i := range refusals {
		if errors.Is(err, refusals[i].err) {
			return refusals[i].code
		}
	}
	var disk *fs.PathError
	if errors.As(err, &disk) {
		return wire.KafkaStorageError
	}
	return wire.UnknownServerError
}

// messageOf is what to tell the client beside the code: nil where the code says it all.
func messageOf(err error) *string {
	var refused *controller.Error
	if errors.As(err, &refused) {
		return optional(refused.Message)
	}
	if err == nil {
		return nil
	}
	var code wire.Code
	if errors.As(err, &code) {
		return optional(code.Text())
	}
	return optional(err.Error())
}
