# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""round_trip.py PROGRAM: makes a tree with all that a file system can hold, copies it with tar, rsync, cp, cpio or mv,
and prints what the copies have, times, holes, links, attributes and access lists included. The working directory is
the place for all of it."""

import os
import shutil
import socket
import stat
import subprocess
import sys

HOLE = 1 << 20
SECOND = 1_700_000_000


def run(*words, expect=0, **options):
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)
    said = (done.stdout + done.stderr).replace(os.getcwd(), "HERE")
    if done.returncode != expect or words[0] != "tar":
        print(f"status {done.returncode} of {' '.join(words)}", *sorted(said.splitlines()), sep="\n  ")
    return done.stdout


def write(path, text, mode=0o644):
    with open(path, "w") as file:
        file.write(text)
    os.chmod(path, mode)


def make_sparse(path):
    with open(path, "wb") as file:
        for place in (HOLE, 3 * HOLE):
            file.seek(place)
            file.write(b"island" * 1000)
        file.truncate(5 * HOLE)


def make_odd_names(top):
    for name in (b"space here", b"-dash", b"\xff\xfe", b"new\nline", b"*?[x]", b"n" * 255, "ünï".encode()):
        with open(os.path.join(os.fsencode(top), name), "wb") as file:
            file.write(name)


def make_links(top):
    write(f"{top}/one", "one file, three names\n")
    os.link(f"{top}/one", f"{top}/two")
    os.mkdir(f"{top}/below")
    os.link(f"{top}/one", f"{top}/below/three")
    os.symlink("one", f"{top}/link")
    os.symlink("below/three", f"{top}/far-link")
    os.symlink("nothing", f"{top}/dangling")
    os.symlink("below", f"{top}/directory-link")
    os.link(f"{top}/link", f"{top}/link-of-a-link", follow_symlinks=False)


def make_attributes(top):
    write(f"{top}/attributed", "with attributes\n")
    os.setxattr(f"{top}/attributed", "user.colour", b"red\0blue")
    os.setxattr(f"{top}/attributed", "user.large", b"x" * 2000)
    os.mkdir(f"{top}/attributed-directory")
    os.setxattr(f"{top}/attributed-directory", "user.of", b"a directory")
    write(f"{top}/listed", "with an access list\n")
    run("setfacl", "-m", "u:1:rw,g:2:r,m::rw", f"{top}/listed")
    os.mkdir(f"{top}/listed-directory")
    run("setfacl", "-m", "u:1:rwx,d:u:1:rwx,d:g:3:rx", f"{top}/listed-directory")
    write(f"{top}/listed-directory/heir", "with an inherited list\n")


def make_others(top):
    os.mkfifo(f"{top}/fifo")
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(f"{top}/socket")
    listener.close()
    for mode in (0o400, 0o600, 0o755, 0o4755, 0o2755, 0o000 if os.geteuid() == 0 else 0o444):
        write(f"{top}/mode-{mode:04o}", f"{mode}\n", mode)
    for mode in (0o700, 0o1777, 0o2775):
        os.mkdir(f"{top}/directory-{mode:04o}")
        os.chmod(f"{top}/directory-{mode:04o}", mode)
    if os.geteuid() == 0:
        os.chown(f"{top}/mode-0600", 1, 2)
        os.chown(f"{top}/link", 3, 4, follow_symlinks=False)


def make_many(top):
    for n in range(12):
        os.mkdir(f"{top}/many-{n}")
        for m in range(40):
            write(f"{top}/many-{n}/file-{m}", f"{n} {m}\n" * (m * 11 % 300))


def walk(top):
    """All names, each after what is below it, in one order."""
    found = [os.path.join(directory, name)
             for directory, directories, files in os.walk(top) for name in files + directories]
    return [*sorted(found, reverse=True), top]


def set_times(top):
    for number, path in enumerate(walk(top)):
        moment = (SECOND + number) * 10**9 + number * 1001
        os.utime(path, ns=(moment, moment), follow_symlinks=False)


def make(top):
    os.mkdir(top)
    for part in (make_links, make_odd_names, make_attributes, make_others, make_many):
        part(top)
    make_sparse(f"{top}/sparse")
    write(f"{top}/empty", "")
    set_times(top)


def attributes(path):
    names = sorted(os.listxattr(path, follow_symlinks=False))
    return " ".join(f"{name}={os.getxattr(path, name, follow_symlinks=False)[:40]!r}" for name in names)


def shown(path, top, inodes, all_times):
    """A name with all it has; which names are one file by the first of them."""
    status = os.lstat(path)
    relative = os.path.relpath(path, top)
    text = os.readlink(path) if stat.S_ISLNK(status.st_mode) else ""
    several = status.st_nlink > 1 and not stat.S_ISDIR(status.st_mode)
    same = inodes.setdefault(status.st_ino, relative) if several else ""
    with_holes = stat.S_ISREG(status.st_mode) and status.st_blocks * 512 < status.st_size
    size = status.st_size if stat.S_ISREG(status.st_mode) else ""
    time = status.st_mtime_ns if all_times or stat.S_ISREG(status.st_mode) else ""
    return (f"{relative!r} {status.st_mode:o} {status.st_uid}:{status.st_gid} {size} {time} {text!r}"
            f" {same!r} {'sparse' if with_holes else ''} {attributes(path)}")


def show(top, all_times=True):
    """Not all_times: those of regular files alone."""
    os.sync()
    inodes = {}
    print(f"== {top}")
    for path in walk(top):
        print(shown(path, top, inodes, all_times))
    for path in walk(top):
        if os.path.isfile(path) and not os.path.islink(path) and os.access(path, os.R_OK):
            print(os.path.relpath(path, top).encode(errors="surrogateescape"), read_sum(path))


def read_sum(path):
    with open(path, "rb") as file:
        return sum(file.read()) % 1_000_003


TAR = ["tar", "--acls", "--xattrs", "--xattrs-include=user.*", "--sparse", "--format=posix",
       "--pax-option=exthdr.name=%d/PaxHeaders/%f,delete=atime,delete=ctime"]


def by_tar():
    # A socket is passed over, with a word about it.
    print(run(*TAR, "--sort=name", "-cf", "one.tar", "-C", "source", "."))
    os.mkdir("copy")
    run(*TAR, "-xpf", "one.tar", "-C", "copy")
    run(*TAR, "-df", "one.tar", "-C", "copy")
    run(*TAR, "--sort=name", "-cf", "two.tar", "-C", "copy", ".")
    show("copy")
    print(run("tar", "-tf", "two.tar").replace("\n\n", "\n"))
    for program in ("gzip", "xz"):
        run(program, "-k", "two.tar")
        run(program, "-t", f"two.tar.{'gz' if program == 'gzip' else 'xz'}")
    run("tar", "-rf", "two.tar", "-C", "source", "one")
    run("tar", "-cf", "three.tar", "-C", "source", "many-1", "many-3", "many-5")
    run("tar", "--delete", "-f", "three.tar", "many-3")
    os.mkdir("again")
    run(*TAR, "--keep-newer-files", "-xf", "two.tar", "-C", "again")
    run("tar", "--listed-incremental=snapshot", "--no-check-device", "-cf", "level0.tar", "again")
    write("again/newer", "newer\n")
    os.remove("again/many-4/file-3")
    print(run("tar", "--listed-incremental=snapshot", "--no-check-device", "-cvf", "level1.tar", "again"))
    for name in ("one.tar", "two.tar", "three.tar", "two.tar.gz", "two.tar.xz", "level0.tar", "level1.tar", "snapshot"):
        os.remove(name)


def by_rsync():
    options = ["rsync", "-aHAXS", "--itemize-changes"]
    if os.geteuid() != 0:
        options.append("--no-D")
    run(*options, "source/", "copy")
    show("copy")
    run(*options, "source/", "copy")
    write("source/one", "changed in place of what was\n")
    os.remove("source/empty")
    os.rename("source/many-1", "source/many-renamed")
    os.utime("source/many-renamed", ns=(0, 10**9))
    run(*options, "--delete", "--delay-updates", "--fuzzy", "source/", "copy")
    run(*options, "--checksum", "--inplace", "--no-S", "source/", "inplace")
    run(*options, "--link-dest=../copy", "source/", "linked")
    run(*options, "--backup", "--backup-dir=../old", "--existing", "linked/many-2/", "copy/many-3/")
    run(*options, "--remove-source-files", "copy/many-5/", "moved")
    os.stat("linked/listed")


def by_cp():
    run("cp", "-a", "source", "copy")
    show("copy")
    run("cp", "-a", "--sparse=always", "copy", "again")
    run("cp", "-al", "copy", "linked")
    run("cp", "-as", f"{os.getcwd()}/copy/many-1", "symbolic")
    run("cp", "-au", "--backup=numbered", "source/.", "again")
    run("cp", "--reflink=auto", "--preserve=all", "source/sparse", "reflinked")
    run("cp", "--parents", "source/many-1/file-3", "again")
    run("install", "-D", "-m", "640", "source/one", "installed/deep/one")
    run("diff", "-r", "--no-dereference", "-x", "fifo", "-x", "socket", "source", "copy")


def by_cpio():
    names = "\0".join(sorted(os.path.relpath(path, "source") for path in walk("source")))
    for form in ("newc", "crc"):
        with open(f"{form}.cpio", "wb") as archive:
            done = subprocess.run(["cpio", "-o", "-0", "-H", form, "--quiet"], cwd="source", stdout=archive,
                                  input=os.fsencode(names), stderr=subprocess.PIPE)
        print(form, done.returncode, done.stderr)
        os.mkdir(form)
        with open(f"{form}.cpio", "rb") as archive:
            done = subprocess.run(["cpio", "-idmu", "--quiet", "--sparse"], cwd=form, stdin=archive,
                                  stderr=subprocess.PIPE)
        print(form, done.returncode, done.stderr)
        os.remove(f"{form}.cpio")
        show(form, all_times=False)
    subprocess.run(["cpio", "-pdmu", "-0", "--quiet", "../passed"], cwd="newc", input=os.fsencode(names))


def by_mv():
    run("cp", "-a", "source", "copy")
    run("mv", "copy/many-1", "copy/many-2", "copy/below")
    run("mv", "-T", "copy/many-3", "copy/attributed-directory/inner")
    run("mv", "-b", "copy/one", "copy/listed")
    run("mv", "-n", "copy/two", "copy/listed")
    run("mv", "copy/sparse", "copy/new\nline")
    run("mv", "-T", "copy/below", "copy/directory-1777")
    run("mv", "-T", "copy/attributed-directory", "copy/directory-1777", expect=1)
    # Out of the root and in again, where mv has to copy directories.
    set_times("copy")
    outside = os.path.join(os.path.dirname(os.getcwd()), "outside")
    run("mv", "copy", outside)
    show(outside)
    run("mv", outside, "back")
    show("back")


def main(program):
    os.umask(0o022)
    make("source")
    show("source")
    {"tar": by_tar, "rsync": by_rsync, "cp": by_cp, "cpio": by_cpio, "mv": by_mv}[program]()
    shutil.rmtree("source")
    print(sorted(os.listdir()))


if __name__ == "__main__":
    main(sys.argv[1])
