// SPDX-License-Identifier: BSD-3-Clause
// SPDX-FileCopyrightText: The shunt authors

// linearizable [-within DURATION] [-cut] [-plain] [-keeps-open] FILE...: are the histories that history.c has written those of
// one directory whose operations happen one after another, each at some moment between its call and its return? Prints
// those that are not, then what was checked; the exit status is 1 if one is not, or could not be decided in time.
//
// With -cut, an operation that ended with EIO has said nothing, and may have happened or not, at any time from its call
// on; how many of them there were, and how many histories are those of one directory only if some of them did happen,
// is printed, too. Else such an operation is wrong.
//
// With -plain, the file system knows no flags of renameat2: EINVAL is the answer, and nothing happens.
//
// With -keeps-open, a file that is open on a client keeps a name of that client's own when it has lost its last one, as on NFS: a
// link that had found it before may still be made.
package main

import (
	"bufio"
	"flag"
	"fmt"
	"os"
	"runtime"
	"sort"
	"strings"
	"sync"
	"syscall"
	"time"
)

// An operation as history.c writes it, and whose it is.
type record struct {
	call, back  int64
	kind        byte
	a, b, links int
	errno       int
	file        uint64
	client      int
}

type history struct {
	number  int
	records []record
}

func read(name string, client int, into map[int]*history) error {
	from, err := os.Open(name)
	if err != nil {
		return err
	}
	defer from.Close()
	lines := bufio.NewScanner(from)
	for lines.Scan() {
		r := record{client: client}
		var number int
		_, err := fmt.Sscanf(lines.Text(), "%d %d %d %c %d %d %d %d %d", &number, &r.call, &r.back, &r.kind, &r.a,
			&r.b, &r.errno, &r.file, &r.links)
		if err != nil || r.a >= slots || r.b >= slots || client >= clients {
			return fmt.Errorf("%s: %q: %v", name, lines.Text(), err)
		}
		if into[number] == nil {
			into[number] = &history{number: number}
		}
		into[number].records = append(into[number].records, r)
	}
	return lines.Err()
}

// Files are numbered in the order in which they are met: a state is small then.
type numbers map[uint64]file

func (n numbers) of(inode uint64) file {
	if inode == 0 {
		return nothing
	}
	if n[inode] == 0 {
		n[inode] = file(len(n) + 1)
	}
	return n[inode]
}

func initialState(h *history, known numbers) (state, map[file]int) {
	var initial state
	extra := map[file]int{} // names outside of the history
	for _, r := range h.records {
		if r.kind == 'i' {
			f := known.of(r.file)
			initial.bind(r.a, f)
			extra[f] = r.links - 1
		}
	}
	return initial, extra
}

// What an operation that ended with EIO is taken for.
type reading int

const (
	wrong reading = iota
	undone
	perhaps // it was done
)

func (r record) failed() bool {
	return r.errno == int(syscall.EIO)
}

func (r record) changes() bool {
	return r.kind != stat && r.kind != open && r.kind != list
}

// The steps of an operation; all may happen at any time of it.
func stepsOf(r record, failed reading, known numbers, extra map[file]int) []step {
	p := step{kind: r.kind, a: r.a, b: r.b, client: r.client, errno: syscall.Errno(r.errno)}
	switch {
	case r.kind == 'i':
		return nil
	case r.failed() && failed == perhaps && r.changes():
		p.maybe = true
		return []step{p}
	case r.failed() && failed != wrong:
		return nil
	case r.kind == link:
		makes := p
		makes.kind = linkMakes
		return []step{p, makes}
	case r.kind == list && r.errno == 0:
		return stepsOfListing(p, r.file)
	}
	p.file = known.of(r.file)
	if r.links != 0 {
		p.links = r.links - extra[p.file]
	}
	return []step{p}
}

func stepsOfListing(p step, seen uint64) []step {
	opened := p
	opened.kind = isOpened
	all := []step{opened}
	for i := 0; i < namesIn; i++ {
		p.a = p.a/namesIn*namesIn + i
		p.kind = isAbsent
		if seen&(1<<p.a) != 0 {
			p.kind = isThere
		}
		all = append(all, p)
	}
	return all
}

func (h *history) steps(failed reading) (state, []timedStep) {
	known := numbers{}
	initial, extra := initialState(h, known)
	var all []timedStep
	unknown := file(firstUnknown)
	for _, r := range h.records {
		for _, p := range stepsOf(r, failed, known, extra) {
			one := timedStep{p, r.call, r.back}
			if p.maybe {
				one.file = unknown
				unknown++
				one.back = forever
			}
			all = append(all, one)
		}
	}
	if len(known) >= filesMax || unknown > lastUnknown {
		panic("more files than the model takes")
	}
	sort.SliceStable(all, func(i, j int) bool { return all[i].call < all[j].call })
	return initial, all
}

func (one timedStep) line(epoch int64) string {
	end := "       ..."
	if one.back != forever {
		end = fmt.Sprintf("%10d", (one.back-epoch)/1000)
	}
	return fmt.Sprintf("  client %2d %10d ... %s us  %-45v", one.client, (one.call-epoch)/1000, end, one.step)
}

// What happened, in an order that is possible as far as it goes, with what the names stand for after each step; then
// what could not come next.
func (h *history) text(failed reading) string {
	const shown = 30
	initial, all := h.steps(failed)
	_, order := find(initial, all, time.Second)
	var text strings.Builder
	fmt.Fprintf(&text, "history %d, which begins with %v:\n", h.number, initial.at)
	now, ordered := initial, map[int]bool{}
	for i, at := range order {
		carriesOut(&now, all[at].step)
		ordered[at] = true
		if i >= len(order)-shown {
			fmt.Fprintf(&text, "%s  %v\n", all[at].line(all[0].call), now.at)
		}
	}
	fmt.Fprintf(&text, "  and then none of these:\n")
	left := 0
	for i, one := range all {
		if !ordered[i] && left < shown {
			left++
			fmt.Fprintf(&text, "%s\n", one.line(all[0].call))
		}
	}
	return text.String()
}

func (h *history) checkAs(failed reading, within time.Duration) verdict {
	initial, all := h.steps(failed)
	found, _ := find(initial, all, within)
	return found
}

func (h *history) failures() int {
	count := 0
	for _, r := range h.records {
		if r.failed() {
			count++
		}
	}
	return count
}

// As narrowly as possible first, which is quick, and enough if it holds: what then may have happened at the end has not.
func (h *history) check(cut bool, within time.Duration) (verdict, reading) {
	if !cut || h.failures() == 0 {
		return h.checkAs(wrong, within), wrong
	}
	if h.checkAs(undone, within) == inOrder {
		return inOrder, undone
	}
	return h.checkAs(perhaps, within), perhaps
}

func (h *history) leaveOut(is func(record) bool) {
	var left []record
	for _, r := range h.records {
		if !is(r) {
			left = append(left, r)
		}
	}
	h.records = left
}

type tally struct {
	sync.Mutex
	checked, steps, wrong, unknown int
	failed, cut, done              int // operations; histories of them, and those that some were done in
	shown                          int
}

func (t *tally) add(h *history, result verdict, failed reading) {
	t.Lock()
	defer t.Unlock()
	t.checked++
	t.steps += len(h.records)
	t.failed += h.failures()
	if h.failures() > 0 {
		t.cut++
	}
	switch {
	case result == outOfOrder:
		t.wrong++
	case result == undecided:
		t.unknown++
	case failed == perhaps:
		t.done++
	}
	if (result != inOrder || failed == perhaps) && t.shown < 3 {
		t.shown++
		fmt.Printf("%s %s", result, h.text(failed))
	}
}

func checkAll(histories map[int]*history, cut bool, within time.Duration) *tally {
	var t tally
	var workers sync.WaitGroup
	queue := make(chan *history)
	for i := 0; i < runtime.NumCPU(); i++ {
		workers.Add(1)
		go func() {
			defer workers.Done()
			for h := range queue {
				result, failed := h.check(cut, within)
				t.add(h, result, failed)
			}
		}()
	}
	for _, h := range histories {
		queue <- h
	}
	close(queue)
	workers.Wait()
	return &t
}

func main() {
	within := flag.Duration("within", 20*time.Second, "how long a history may take")
	plain := flag.Bool("plain", false, "a rename with flags may be EINVAL")
	flag.BoolVar(&keepsOpen, "keeps-open", false, "as on NFS: a file that is open may be linked after its last name has gone, its directory not be removed, and one that has gone not be listed")
	cut := flag.Bool("cut", false, "what ended with EIO may have happened or not")
	flag.Parse()
	histories := map[int]*history{}
	for i, name := range flag.Args() {
		if err := read(name, i%clients, histories); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
	}
	if *plain {
		for _, h := range histories {
			h.leaveOut(func(r record) bool {
				return (r.kind == exchange || r.kind == noreplace) && r.errno == int(syscall.EINVAL)
			})
		}
	}
	if keepsOpen {
		for _, h := range histories {
			h.leaveOut(func(r record) bool {
				return r.kind == rmdir && r.errno == int(syscall.ENOTEMPTY) || r.kind == list && r.errno == int(syscall.ESTALE)
			})
		}
	}
	t := checkAll(histories, *cut, *within)
	if *cut {
		fmt.Printf("%d operations failed in %d histories, some of which happened in %d\n", t.failed, t.cut, t.done)
	}
	fmt.Printf("%d histories, %d operations: %d not linearizable, %d not decided\n", t.checked, t.steps, t.wrong,
		t.unknown)
	if t.checked == 0 || t.wrong+t.unknown > 0 {
		os.Exit(1)
	}
}
