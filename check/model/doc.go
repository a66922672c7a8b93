// Package model says what DAT demands of a program of calls, in the plainest
// terms: lists, no locks, nothing concurrent. Its tests run random programs
// through the public API and let the model judge each result and each event.
//
// The model shares no code, type or table with the library, and imports nothing
// of it: its numbers are typed from DAT's headers and its rules from DAT's text.
// Where DAT leaves a choice the model takes either, as with a suppressed request,
// whose slot may or may not be free again before a later one completes.
//
// A program is a script of one command a line; see [Parse]. A program that fails
// is shrunk, and printed as a script that the test Replay runs.
package model
