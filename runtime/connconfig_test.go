package runtime

import (
	"errors"
	"math"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/ep"
	"godat/hw"
)

// Listen refuses what each Accept would refuse, and says the same as Dial.
func TestListenAndDialRefuseTheSameSettingsInTheSameWords(t *testing.T) {
	attr := func(a ep.Attr) ConnConfig { return ConnConfig{Attr: &a} }
	onEach(t, func(t *testing.T, ia *IA) {
		most := ia.Attr().MaxDepth
		for _, tc := range []struct {
			cfg  ConnConfig
			want []string
		}{
			{ConnConfig{Depth: -1}, []string{"ConnConfig.Depth is -1; on this device it may be 1 to"}},
			{ConnConfig{Depth: 1 << 17}, []string{"ConnConfig.Depth is 131072; on this device it may be 1 to"}},
			{ConnConfig{Depth: most/2 + 1}, []string{"ConnConfig.Depth is"}},
			{ConnConfig{Depth: most + 1, Attr: &ep.Attr{MaxRequestDTOs: 1}}, []string{"ConnConfig.Depth is"}},
			{ConnConfig{Message: -1}, []string{"ConnConfig.Message is -1"}},
			{ConnConfig{Depth: most / 2, Message: int(min(ia.Attr().MaxMessage, math.MaxInt32))}, []string{"ConnConfig.Depth is", " and Message "}},
			{ConnConfig{Privileges: 0xC0}, []string{"ConnConfig.Privileges"}},
			{ConnConfig{Queue: true}, []string{"ConnConfig.Queue"}},
			{attr(ep.Attr{ServiceType: 9}), []string{"Attr.ServiceType is 9"}},
			{attr(ep.Attr{QoS: 99}), []string{"Attr.QoS 99"}},
			{attr(ep.Attr{RecvFlags: hw.BarrierFence}), []string{"Attr.RecvFlags"}},
			{attr(ep.Attr{RequestFlags: hw.SolicitedWait}), []string{"Attr.RequestFlags"}},
			{attr(ep.Attr{MaxRecvDTOs: -7}), []string{"Attr.MaxRecvDTOs is -7"}},
			{attr(ep.Attr{MaxRequestIOV: math.MaxInt}), []string{"Attr.MaxRequestIOV is " + strconv.Itoa(math.MaxInt)}},
			{attr(ep.Attr{MaxReadIn: math.MaxInt}), []string{"Attr.MaxReadIn is " + strconv.Itoa(math.MaxInt)}},
			{attr(ep.Attr{MaxMessageSize: math.MaxUint64}), []string{"Attr.MaxMessageSize is 18446744073709551615"}},
			{attr(ep.Attr{SoftHighWatermark: -9}), []string{"Attr.SoftHighWatermark is -9"}},

			// Settings that contradict each other.
			{attr(ep.Attr{MaxRecvDTOs: 2}), []string{"ConnConfig.Depth is 16", "Attr.MaxRecvDTOs 2"}},
			{attr(ep.Attr{MaxRecvDTOs: ep.NoDTOs}), []string{"ConnConfig.Depth is 16", "Attr.MaxRecvDTOs 0"}},
			{attr(ep.Attr{MaxRecvIOV: ep.NoDTOs}), []string{"ConnConfig.Depth is 16", "Attr.MaxRecvIOV 0"}},
			{attr(ep.Attr{MaxRequestIOV: ep.NoDTOs}), []string{"ConnConfig.Message is 4096", "Attr.MaxRequestIOV 0"}},
			{attr(ep.Attr{MaxMessageSize: 10}), []string{"ConnConfig.Message is 4096", "Attr.MaxMessageSize 10"}},
		} {
			_, listened := ia.Listen(within(t), localhost(ia), tc.cfg)
			_, dialed := ia.Dial(within(t), "127.0.0.1:9", tc.cfg)
			_, paired := ia.NewPaired(tc.cfg)
			for _, want := range tc.want {
				assert.ErrorContains(t, listened, want)
			}
			kind := hw.InvalidParameter
			if a := tc.cfg.Attr; a != nil && (a.ServiceType != 0 || a.QoS != 0) {
				kind = hw.ModelNotSupported
			}
			for _, err := range []error{listened, dialed, paired} {
				requireCode(t, err, kind, hw.NoSubtype)
				assert.Equal(t, text(listened), text(err))
			}
		}
		now, err := ia.Snapshot()
		require.NoError(t, err)
		assert.Empty(t, now.Conns)
		assert.Empty(t, now.Endpoints)
		assert.Zero(t, now.Memory.Zones)
		assert.Empty(t, now.Listeners)
	})
}

// text is what an error says, without the name of the call.
func text(err error) string {
	var e *hw.Error
	if !errors.As(err, &e) {
		return err.Error()
	}
	return e.Text
}

// A program that owns the receives posts as many as it wants, into as many segments.
func TestSettingsThatFitEachOtherAreTaken(t *testing.T) {
	onEach(t, func(t *testing.T, ia *IA) {
		for _, cfg := range []ConnConfig{
			{Depth: ia.Attr().MaxDepth / 2, Message: 1},
			{Depth: 4, Message: 64, Attr: &ep.Attr{MaxRecvDTOs: 4, MaxMessageSize: 64, MaxRecvIOV: 1, MaxRequestIOV: 1}},
			{Depth: 4, Attr: &ep.Attr{MaxRequestDTOs: ep.NoDTOs, MaxRequestIOV: ep.NoDTOs}},
			{OwnReceives: true, Privileges: 0xC0, Attr: &ep.Attr{MaxRecvDTOs: 2, MaxRecvIOV: ep.NoDTOs, MaxRequestIOV: ep.NoDTOs, MaxMessageSize: 1}},
		} {
			l, client, server := both(t, ia, cfg)
			require.NoError(t, client.Close())
			require.True(t, nextEvent(t, server.Events()).Ended())
			require.NoError(t, l.Close())
		}
	})
}
