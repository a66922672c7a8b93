// Package ledger runs the program of posts of the seeded world on real processors; see check/world/posts.
package ledger
