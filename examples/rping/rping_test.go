package main

import (
	"bytes"
	"context"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"godat/mem"
	dat "godat/runtime"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, goleak.IgnoreCurrent()) }

// both runs a server and a client on a provider, and returns their outputs and errors.
func both(t *testing.T, provider string, server, client options) (serverOut, clientOut string, serverErr, clientErr error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	ia, err := dat.Open(ctx, provider)
	require.NoError(t, err)
	defer func() { require.NoError(t, ia.Close()) }()
	var serverText, clientText bytes.Buffer
	ready, done := make(chan string, 1), make(chan error, 1)
	go func() { done <- serve(ctx, ia, &server, &serverText, func(address string) { ready <- address }) }()
	host, port, err := net.SplitHostPort(<-ready)
	require.NoError(t, err)
	client.Addr = host
	client.Port, err = strconv.ParseUint(port, 10, 16)
	require.NoError(t, err)
	clientErr = ping(ctx, ia, &client, &clientText)
	serverErr = <-done
	return serverText.String(), clientText.String(), serverErr, clientErr
}

func TestPingsComeBackUnchanged(t *testing.T) {
	for _, provider := range []string{"loop", "iwarp"} {
		for _, size := range []int{leastSize, 64, 100, 4096, mostSize} {
			serverOut, clientOut, err, clientErr := both(t, provider,
				options{Size: size, Verbose: true}, options{Size: size, Count: 3, Validate: true, Verbose: true})
			require.NoError(t, err)
			require.NoError(t, clientErr)
			assert.Equal(t, 3, strings.Count(clientOut, "\n"))
			assert.Equal(t, strings.ReplaceAll(serverOut, "server ping", "ping"), clientOut)
			assert.Contains(t, clientOut, "rdma-ping-2: CDE")
		}
	}
}

func TestAPingTooLongForTheServerEndsBoth(t *testing.T) {
	_, _, err, clientErr := both(t, "loop", options{Size: 64}, options{Size: 65, Count: 1})
	require.ErrorContains(t, err, "65 bytes")
	require.Error(t, clientErr)
}

func TestAnAdvertIsEncodedAsInTheCProgram(t *testing.T) {
	b := make([]byte, advertSize)
	r := mem.RemoteSegment{Addr: 0x0102030405060708, Context: 0x090a0b0c, Len: 0x0d0e}
	putAdvert(b, r)
	assert.Equal(t, []byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 0, 0, 13, 14}, b)
	got, err := parseAdvert(b, 1<<16)
	require.NoError(t, err)
	assert.Equal(t, r, got)
}

func TestMalformedAdvertsAreRefused(t *testing.T) {
	b := make([]byte, advertSize)
	_, err := parseAdvert(b, 100)
	require.Error(t, err, "no bytes")
	b[15] = 101
	_, err = parseAdvert(b, 100)
	require.Error(t, err, "more than fit")
	_, err = parseAdvert(b[:15], 1000)
	require.Error(t, err, "too short")
}

func TestImpossibleOptionsAreRefused(t *testing.T) {
	for name, o := range map[string]options{
		"too small": {Size: leastSize - 1, Server: true}, "too big": {Size: mostSize + 1, Server: true},
		"negative": {Size: 64, Count: -1, Server: true}, "no address": {Size: 64, Client: true},
	} {
		require.Error(t, o.check(), name)
	}
	require.NoError(t, (&options{Size: 64, Server: true}).check())
}

func TestAPingHasTheTextOfTheCProgram(t *testing.T) {
	b := make([]byte, 32)
	fill(b, 1)
	assert.Equal(t, "rdma-ping-1: BCDEFGHIJKLMNOPQRS\x00", string(b))
}
