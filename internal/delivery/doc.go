// Package delivery is what is behind the dispatchers of package evd: the queues that
// endpoints reserve places in and put events into, and the ways in which events leave
// them. Package evd shows programs what they may call; its documentation says what
// reservations, places and silent events are.
package delivery
