// Package mistakes makes the mistakes of somebody who is new to godat, each in a few lines as
// a newcomer writes them, and demands that the library answers each with an error that says what
// it saw and what to do, or that the compiler refuses it. Its tests are the table.
package mistakes
