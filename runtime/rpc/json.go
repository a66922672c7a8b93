package rpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"godat/hw"
)

// mostQuestion is the most bytes of a question that a server of HandleJSON reads.
const mostQuestion = 4 << 20

// HandleJSON makes a [Handler] of a function of values, for calls by [Client.CallJSON]. A question
// that is not the JSON of a Q, or that is longer than 4 MiB, is answered with CodeUnknown, and the
// function does not get it. An answer that is too long for a message goes into the caller's sink, if
// the call has one to which the function has not written and that is long enough. Otherwise the caller
// fetches it, up to 64 MiB: the server keeps it for the call until then, and for Config.Stall at most.
func HandleJSON[Q, A any](answer func(r *Request, question Q) (A, error)) Handler {
	return func(r *Request) ([]byte, error) {
		var question Q
		if err := r.question(&question); err != nil {
			return nil, err
		}
		a, err := answer(r, question)
		if err != nil {
			return nil, err
		}
		text, err := json.Marshal(a)
		if err == nil && len(text) > r.most() && len(text) <= r.SinkLen() && r.wrote() == 0 {
			return nil, r.WriteBytes(text, 0)
		}
		return text, err
	}
}

// question decodes what the caller asks: it is in the source if there is no payload.
func (r *Request) question(q any) (err error) {
	text := r.Payload()
	if len(text) == 0 {
		if r.SourceLen() > mostQuestion {
			return &Error{CodeUnknown, "the question is too long"}
		}
		if text, err = r.ReadAll(); err != nil {
			return err
		}
	}
	if err = json.Unmarshal(text, q); err != nil {
		return &Error{CodeUnknown, "the question: " + err.Error()}
	}
	return nil
}

// CallJSON is [Client.Call] with a question and an answer that are values, for a server of
// [HandleJSON]; answer points to where the answer goes. The question takes the place of the call's
// Payload, or of its SourceBytes if it is too long for a message and the call names no source of
// its own. The answer may have up to 64 MiB of JSON, or Config.Answer. One that is too long for a message comes through
// SinkBytes, if it fits. Otherwise the client fetches it, which takes another round trip, and registers
// memory for that. With an answer of more bytes, or of a server of an older version, the call fails with
// CodeTooLong, and has run.
//
// answer is a pointer, or nil if the answer does not matter: then it may have any length. If it is another value, or the question has
// no form in JSON, the call is not made; the error has encoding/json's own, behind the method and the
// server's address. If the answer does not fit, too, but then the call has run. A Sink is
// INVALID_PARAMETER, as a Payload is.
func (c *Client) CallJSON(ctx context.Context, call Call, question, answer any) error {
	if c == nil || c.ia == nil {
		return notMade("rpc.Client.CallJSON", "Client", "Dial")
	}
	if call.Payload != nil {
		return hw.Errorf("rpc.Client.CallJSON", hw.InvalidParameter, hw.Arg2, "a Payload, where the question goes")
	}
	if call.Sink.Len != 0 {
		return hw.Errorf("rpc.Client.CallJSON", hw.InvalidParameter, hw.Arg2, "a Sink, from which a long answer can't be decoded: name SinkBytes")
	}
	if to := reflect.ValueOf(answer); answer != nil && (to.Kind() != reflect.Pointer || to.IsNil()) {
		return c.misfit(call.Method, "answer", &json.InvalidUnmarshalError{Type: to.Type()})
	}
	text, err := json.Marshal(question)
	if err != nil {
		return c.misfit(call.Method, "question", err)
	}
	if len(text) > c.most() && call.SourceBytes == nil && call.Source.Len == 0 {
		call.SourceBytes = text
	} else {
		call.Payload = text
	}
	written := 0
	if call.Written == nil {
		call.Written = &written
	}
	if answer != nil {
		call.flags = flagLater
	}
	text, err = c.Call(ctx, call, nil)
	if answer == nil && errors.Is(err, &Error{Code: CodeTooLong}) {
		return nil
	}
	if err != nil || answer == nil {
		return err
	}
	if len(text) == 0 {
		text = call.SinkBytes[:min(*call.Written, len(call.SinkBytes))]
	}
	if err = json.Unmarshal(text, answer); err != nil {
		return c.misfit(call.Method, "answer", err)
	}
	return nil
}

// misfit is the error of a call whose question or answer does not fit its value.
func (c *Client) misfit(method uint16, which string, err error) error {
	return fmt.Errorf("rpc.Client.CallJSON, method %d of %s: the %s: %w", method, c.address, which, err)
}

// most is the most bytes of a payload, as the last server has said.
func (c *Client) most() int { return c.current().request }
