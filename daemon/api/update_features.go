package api

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"

	"kring/daemon/server"
	"kring/wire"
)

// The ways to change a feature (KIP-584).
const (
	upgrade         = 1
	safeDowngrade   = 2
	unsafeDowngrade = 3
)

// updateFeatures changes finalized features. A cluster in ZooKeeper mode knows none, so each change is refused, with the reasons
// Kafka has.
func updateFeatures(_ *Context, r *server.Request) {
	m := kmsg.NewPtrUpdateFeaturesRequest()
	if !decode(r, m) {
		return
	}
	resp := kmsg.NewPtrUpdateFeaturesResponse()
	seen := map[string]bool{}
	for i := range m.FeatureUpdates {
		u := &m.FeatureUpdates[i]
		if seen[u.Feature] {
			continue
		}
		seen[u.Feature] = true
		if r.Version == 0 {
			if u.UpgradeType = upgrade; u.AllowDowngrade {
				u.UpgradeType = safeDowngrade
			}
		}
		rr := kmsg.NewUpdateFeaturesResponseResult()
		rr.Feature, rr.ErrorCode, rr.ErrorMessage = u.Feature, int16(wire.InvalidRequest), optional(refusedFeature(u))
		resp.Results = append(resp.Results, rr)
	}
	r.ReplyMessage(resp)
}

func refusedFeature(u *kmsg.UpdateFeaturesRequestFeatureUpdate) string {
	switch {
	case u.Feature == "":
		return "Feature name can not be empty."
	case u.UpgradeType < upgrade || u.UpgradeType > unsafeDowngrade:
		return "Received unknown upgrade type."
	case u.MaxVersionLevel < 1 && u.UpgradeType != upgrade:
		return "Can not delete non-existing finalized feature."
	case u.MaxVersionLevel < 1:
		return fmt.Sprintf("Can not provide versionLevel: %d less than 1 without setting the SAFE downgradeType in the request.",
			u.MaxVersionLevel)
	}
	return "Could not apply finalized feature update because the provided feature is not supported."
}
