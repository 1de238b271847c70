// SPDX-License-Identifier: BSD-3-Clause
// SPDX-FileCopyrightText: The shunt authors

// files DIRECTORY COUNT: makes COUNT files in ten directories, by as many goroutines, walks, renames and removes them, by
// Go's own packages, and prints what it finds. Built without libc.
package main

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"
)

const directories = 10

func check(err error) {
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

func directory(i int) string {
	return fmt.Sprintf("d%d", i)
}

// What each goroutine does in a directory of its own, and in that of the next one.
func inEach(work func(i int)) {
	var all sync.WaitGroup
	for i := 0; i < directories; i++ {
		all.Add(1)
		go func(i int) {
			defer all.Done()
			work(i)
		}(i)
	}
	all.Wait()
}

func makeFiles(i, count int) {
	check(os.Mkdir(directory(i), 0o750))
	for f := 0; f < count; f++ {
		name := filepath.Join(directory(i), fmt.Sprint("f", f))
		file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o640)
		check(err)
		fmt.Fprintln(file, "text of", name)
		check(file.Close())
		check(os.Chtimes(name, time.Unix(1e9, 0), time.Unix(int64(1e9+f), 0)))
	}
}

func renameFiles(i, count int) {
	for f := 0; f < count; f += 2 {
		from := filepath.Join(directory(i), fmt.Sprint("f", f))
		check(os.Rename(from, filepath.Join(directory((i+1)%directories), fmt.Sprint("from", i, "-", f))))
	}
}

func removeFiles(i, count int) {
	for f := 1; f < count; f += 4 {
		check(os.Remove(filepath.Join(directory(i), fmt.Sprint("f", f))))
	}
}

// The names, modes, sizes, times and contents below here: how many, and a sum of all.
func tell(what string) {
	sum, count := sha256.New(), 0
	check(filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		check(err)
		about, err := entry.Info()
		check(err)
		fmt.Fprintln(sum, path, about.Mode())
		if about.Mode().IsRegular() {
			text, err := os.ReadFile(path)
			check(err)
			fmt.Fprintln(sum, about.Size(), about.ModTime().UnixNano(), string(text))
			count++
		}
		return nil
	}))
	fmt.Printf("%s: %d files, %x\n", what, count, sum.Sum(nil)[:8])
}

func main() {
	check(os.Chdir(os.Args[1]))
	count, err := strconv.Atoi(os.Args[2])
	check(err)
	count /= directories
	inEach(func(i int) { makeFiles(i, count) })
	tell("made")
	inEach(func(i int) { renameFiles(i, count) })
	tell("renamed")
	inEach(func(i int) { removeFiles(i, count) })
	tell("removed")
	_, err = os.OpenFile("d0/f3", os.O_CREATE|os.O_EXCL, 0o600)
	fmt.Println(os.IsExist(err), os.Symlink("d0/f3", "link"))
	text, err := os.ReadFile("link")
	fmt.Print(string(text), err, "\n")
	check(os.RemoveAll("d9"))
	tell("without d9")
}
