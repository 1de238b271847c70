// SPDX-License-Identifier: BSD-3-Clause
// SPDX-FileCopyrightText: The shunt authors

package main

import (
	"fmt"
	"syscall"
)

// The model: a few names, each of which stands for a file or for nothing.
//
// What the kernel does natively in two steps has two here, in this order: link looks the old name up, later makes
// the new one, and fails if the file has lost its last name meanwhile. A listing is a look at each name for itself,
// at any time between its opendir and its end: names that come or go meanwhile may or may not be in it.
//
// A directory that was removed has no names, and its path leads nowhere until it is made again. What had found it before meets a
// dead one: as if it had come when there was none.

const (
	slots    = 6
	namesIn  = 3 // a directory
	folders  = slots / namesIn
	clients  = 16
	filesMax = 512

	nothing      = 0      // no file
	missing      = 0xffff // a link whose old name was not there
	firstUnknown = 0x4000 // of files that a birth without an answer may have made
	lastUnknown  = 0x7fff
)

type file uint16 // numbered within a history from 1 on

type state struct {
	at     [slots]file
	seen   [filesMax / 64]uint64 // files that were there at some time: nothing is born twice
	linked [clients]file         // what the link that a client is at has found
	gone   [folders]bool         // directories that are not there
}

// What a step of an operation is called in the history, and what it says. One that is a maybe failed for want of an
// answer: it happens at any time from its call on, or at the end, where it changes nothing that anybody sees. The file
// that such a birth makes has a number that nobody was told, until somebody is.
type step struct {
	kind   byte
	a, b   int
	client int
	errno  syscall.Errno
	file   file
	links  int // not counted where 0
	maybe  bool
}

const (
	create    = 'c'
	exclusive = 'x'
	unlink    = 'u'
	rename    = 'r'
	noreplace = 'n'
	exchange  = 'e'
	link      = 'l' // its first step
	linkMakes = 'm' // its second
	stat      = 's'
	open      = 'o'
	list      = 'd'
	mkdir     = 'k'
	rmdir     = 'z'
	isOpened  = 'q' // of a listing, as those that follow
	isThere   = 'p'
	isAbsent  = 'a'
)

func (s *state) isNew(f file) bool {
	return f != nothing && s.seen[f/64]&(1<<(f%64)) == 0
}

func (s *state) bind(slot int, f file) {
	s.at[slot] = f
	s.seen[f/64] |= 1 << (f % 64)
}

func (s *state) isGone(slot int) bool {
	return s.gone[slot/namesIn]
}

func (s *state) isEmpty(slot int) bool {
	first := slot / namesIn * namesIn
	for _, f := range s.at[first : first+namesIn] {
		if f != nothing {
			return false
		}
	}
	return true
}

func (s *state) links(f file) int {
	count := 0
	for _, at := range s.at {
		if at == f {
			count++
		}
	}
	return count
}

// A file whose number is not known yet has the one that somebody was told now.
func (s *state) learn(slot int, f file) {
	unknown := s.at[slot]
	if unknown < firstUnknown || !s.isNew(f) {
		return
	}
	for i := range s.at {
		if s.at[i] == unknown {
			s.bind(i, f)
		}
	}
	for i := range s.linked {
		if s.linked[i] == unknown {
			s.linked[i] = f
		}
	}
}

// A file that has lost its last name has one all the same while some process of a client has it open (NFS).
var keepsOpen bool

// The one error that a call may end with, and when.
func failsAs(s *state, p step) bool {
	there, onto := s.at[p.a] != nothing, s.at[p.b] != nothing
	switch {
	case p.kind == mkdir && p.errno == syscall.EEXIST:
		return !s.isGone(p.a)
	case p.kind == rmdir && p.errno == syscall.ENOTEMPTY:
		return !s.isEmpty(p.a)
	case (p.kind == rmdir || p.kind == create || p.kind == exclusive || p.kind == list) && p.errno == syscall.ENOENT:
		return s.isGone(p.a)
	case (p.kind == rename || p.kind == noreplace) && p.errno == syscall.ENOENT && s.isGone(p.b):
		return true
	case p.kind == exclusive && p.errno == syscall.EEXIST:
		return there
	case p.kind == noreplace && p.errno == syscall.EEXIST:
		return there && onto
	case p.kind == exchange && p.errno == syscall.ENOENT:
		return !there || !onto
	case (p.kind == unlink || p.kind == rename || p.kind == noreplace || p.kind == stat || p.kind == open) &&
		p.errno == syscall.ENOENT:
		return !there
	}
	return false
}

func makes(s *state, p step) bool {
	if s.at[p.a] != nothing {
		return p.kind == create && s.at[p.a] == p.file
	}
	if !s.isNew(p.file) || s.isGone(p.a) {
		return false
	}
	s.bind(p.a, p.file)
	return true
}

func removes(s *state, p step) bool {
	if s.isGone(p.a) || !s.isEmpty(p.a) {
		return false
	}
	s.gone[p.a/namesIn] = true
	return true
}

func renames(s *state, p step) bool {
	from, onto := s.at[p.a], s.at[p.b]
	switch {
	case from == nothing || s.isGone(p.b) || (p.kind == noreplace && onto != nothing) || (p.kind == exchange && onto == nothing):
		return false
	case from == onto:
	case p.kind == exchange:
		s.at[p.a], s.at[p.b] = onto, from
	default:
		s.at[p.a], s.at[p.b] = nothing, from
	}
	return true
}

func looksForLink(s *state, p step) bool {
	s.linked[p.client] = s.at[p.a]
	if s.at[p.a] == nothing {
		s.linked[p.client] = missing
	}
	return true
}

func makesLink(s *state, p step) bool {
	found := s.linked[p.client]
	s.linked[p.client] = nothing
	if found == nothing { // the first step comes first
		return false
	}
	onto, alive := s.at[p.b] != nothing, found != missing && s.links(found) > 0
	switch p.errno {
	case 0:
		if found != missing && (alive || keepsOpen) && !onto && !s.isGone(p.b) {
			s.at[p.b] = found
			return true
		}
	case syscall.EEXIST:
		return found != missing && onto
	case syscall.ENOENT:
		return found == missing || (!alive && !onto) || s.isGone(p.b)
	}
	return false
}

// What it would have done natively: a link in one step, to keep it simple.
func maybe(s *state, p step) {
	from, onto := s.at[p.a] != nothing, s.at[p.b] != nothing
	switch p.kind {
	case mkdir:
		s.gone[p.a/namesIn] = false
	case rmdir:
		removes(s, p)
	case create, exclusive:
		if !from && !s.isGone(p.a) {
			s.at[p.a] = p.file
		}
	case unlink:
		s.at[p.a] = nothing
	case link:
		if from && !onto && !s.isGone(p.b) {
			s.at[p.b] = s.at[p.a]
		}
	default:
		renames(s, p)
	}
}

func carriesOut(s *state, p step) bool {
	if p.maybe {
		maybe(s, p)
		return true
	}
	if p.file != nothing {
		s.learn(p.a, p.file)
	}
	if p.errno != 0 && p.kind != link && p.kind != linkMakes {
		return failsAs(s, p)
	}
	switch p.kind {
	case create, exclusive:
		return makes(s, p)
	case unlink:
		was := s.at[p.a]
		s.at[p.a] = nothing
		return was != nothing
	case rename, noreplace, exchange:
		return renames(s, p)
	case link:
		return looksForLink(s, p)
	case linkMakes:
		return makesLink(s, p)
	case stat, open:
		return p.file != nothing && s.at[p.a] == p.file && (p.links == 0 || p.links == s.links(p.file))
	case mkdir:
		was := s.isGone(p.a)
		s.gone[p.a/namesIn] = false
		return was
	case rmdir:
		return removes(s, p)
	case isOpened:
		return !s.isGone(p.a)
	case isThere:
		return s.at[p.a] != nothing
	case isAbsent:
		return s.at[p.a] == nothing
	}
	return false
}

func slotName(slot int) string {
	return fmt.Sprintf("%c/n%d", 'p'+slot/namesIn, slot%namesIn)
}

func (p step) String() string {
	words := map[byte]string{create: "create", exclusive: "create exclusively", unlink: "unlink", rename: "rename",
		noreplace: "rename to no name", exchange: "exchange", link: "link: find", linkMakes: "link: make", stat: "stat",
		open: "open", list: "list", mkdir: "mkdir", rmdir: "rmdir", isOpened: "opened", isThere: "listed:", isAbsent: "not listed:"}
	text := words[p.kind] + " " + slotName(p.a)
	if p.kind == rename || p.kind == noreplace || p.kind == exchange || p.kind == link || p.kind == linkMakes {
		text += " " + slotName(p.b)
	}
	if p.maybe {
		return text + ": nobody knows"
	}
	if p.errno != 0 {
		return text + ": " + p.errno.Error()
	}
	if p.file != nothing {
		text += fmt.Sprintf(": file %d", p.file)
	}
	if p.links != 0 {
		text += fmt.Sprintf(", %d links", p.links)
	}
	return text
}
