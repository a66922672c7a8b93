// Package model says what DAT demands of a program of calls, as simply as possible: with
// lists, without locks, with nothing concurrent. It draws random programs, too. Package driver runs
// them through the library's public API and lets the model judge each result and each event.
//
// The model shares no code, type or table with the library, and imports nothing of it:
// its numbers are typed from DAT's headers and its rules from DAT's text. Where DAT
// leaves a choice, the model accepts either. For example, the slot of a suppressed
// request may or may not be free again before a later request completes.
//
// A program is a script of one command a line; see [Parse]. Package driver leaves out of a program
// that fails what it can, and says it as a script for its TestScriptsDoWhatTheModelSays.
package model
