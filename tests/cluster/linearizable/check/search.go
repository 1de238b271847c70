// SPDX-License-Identifier: BSD-3-Clause
// SPDX-FileCopyrightText: The shunt authors

package main

import (
	"math"
	"time"
)

// The search for an order: that of Wing and Gong, with Lowe's memory of what has been tried ("Testing for
// linearizability", 2017). What only looks, and finds what it says, is taken at once and never tried later: it
// changes nothing, and whatever had to come before it has. A long listing among many changes, which is several looks,
// would else double the search with each of them.

const (
	stepsMax = 1024
	forever  = math.MaxInt64
)

type timedStep struct {
	step
	call, back int64
}

type verdict int

const (
	inOrder verdict = iota
	outOfOrder
	undecided
)

func (v verdict) String() string {
	return [...]string{"Ok", "Illegal", "Unknown"}[v]
}

// What has been done, and what the names stand for then.
type moment struct {
	done [stepsMax / 64]uint64
	now  state
}

type search struct {
	steps   []timedStep // by their calls
	tried   map[moment]bool
	order   []int // that is being tried
	longest []int
	until   time.Time
}

func (p step) looks() bool {
	return p.kind == stat || p.kind == open || p.kind == isOpened || p.kind == isThere || p.kind == isAbsent ||
		(p.errno != 0 && p.kind != link && p.kind != linkMakes && !p.maybe)
}

func (m *moment) has(i int) bool {
	return m.done[i/64]&(1<<(i%64)) != 0
}

// The steps that may be next: none that was called after another one, which is not done, had returned.
func (s *search) next(m *moment) []int {
	var all []int
	first := int64(forever)
	for i, one := range s.steps {
		if one.call > first {
			break
		}
		if !m.has(i) {
			all = append(all, i)
			first = min(first, one.back)
		}
	}
	return all
}

func min(a, b int64) int64 {
	if a < b {
		return a
	}
	return b
}

func (s *search) take(m *moment, i int) bool {
	after := m.now
	if !carriesOut(&after, s.steps[i].step) {
		return false
	}
	m.now = after
	m.done[i/64] |= 1 << (i % 64)
	s.order = append(s.order, i)
	return true
}

// All that only looks and may be next, and what may be next after it, until nothing does: what is left to choose from.
func (s *search) look(m *moment) []int {
	for {
		all, took := s.next(m), false
		for _, i := range all {
			before := *m
			if s.steps[i].looks() && s.take(m, i) {
				if m.now == before.now {
					took = true
				} else { // it has told which file a birth made: that is a choice
					*m, s.order = before, s.order[:len(s.order)-1]
				}
			}
		}
		if !took {
			return all
		}
	}
}

// Is what follows these steps possible?
func (s *search) goesOn(m moment) verdict {
	began := len(s.order)
	defer func() { s.order = s.order[:began] }()
	all := s.look(&m)
	if len(s.order) > len(s.longest) {
		s.longest = append([]int(nil), s.order...)
	}
	if len(s.order) == len(s.steps) {
		return inOrder
	}
	if s.tried[m] {
		return outOfOrder
	}
	s.tried[m] = true
	for _, i := range all {
		after := m
		if !s.take(&after, i) {
			continue
		}
		if found := s.goesOn(after); found != outOfOrder {
			return found
		}
		s.order = s.order[:len(s.order)-1]
		if time.Now().After(s.until) {
			return undecided
		}
	}
	return outOfOrder
}

// Are these, sorted by their calls, the steps of one directory that begins so? Gives the longest order that was found, too.
func find(initial state, steps []timedStep, within time.Duration) (verdict, []int) {
	if len(steps) > stepsMax {
		panic("more steps than the search takes")
	}
	s := search{steps: steps, tried: map[moment]bool{}, until: time.Now().Add(within)}
	found := s.goesOn(moment{now: initial})
	return found, s.longest
}
