# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""Programs as they come from the distribution, natively and under shunt with every file redirected: what they print
and what they leave must be equal."""

import os
import pathlib
import re
import shutil
import tempfile

import pytest
from conftest import assert_equal_snapshots, assert_equal_text, make_pair, redirected_files, run, snapshot

LEAST_FILES = 10_000


def kernel_source():
    """The newest linux-source tarball of the distribution."""
    found = list(pathlib.Path("/usr/src").glob("linux-source-*.tar.*"))
    assert found, "no kernel source in /usr/src: install the package linux-source"
    return max(found, key=lambda path: [int(part) for part in re.findall(r"\d+", path.name)])


@pytest.fixture(scope="module")
def source(test_directory):
    """A plain source tree of more than 10,000 files, and `source.tar` of it next to it."""
    directory = pathlib.Path(tempfile.mkdtemp(dir=test_directory))
    tree = directory / "source"
    tree.mkdir()
    run(["tar", "-xf", kernel_source(), "-C", tree, "--no-same-owner", "--strip-components=1", "--wildcards",
         "--no-wildcards-match-slash", "linux-source-*/Documentation", "linux-source-*/net"], timeout=300).check()
    files = sum(len(names) for _, _, names in os.walk(tree))
    assert files > LEAST_FILES, f"only {files} files in {tree}"
    run(["tar", "--format=posix", "-cf", directory / "source.tar", "-C", directory, "source"], timeout=120).check()
    yield tree
    shutil.rmtree(directory)


@pytest.fixture(scope="module")
def extracted(shunt, source):
    """The tree, extracted by tar in each directory of a pair; under shunt it stays redirected."""
    directory = pathlib.Path(tempfile.mkdtemp(dir=source.parent))
    pair = make_pair(shunt, directory)
    pair.both("tar -xf $TAR", TAR=source.parent / "source.tar")
    files = len(redirected_files(pair.shunt))
    assert files > LEAST_FILES, f"only {files} files were redirected"
    return pair


@pytest.mark.large
def test_tar_extracts_and_reads_back(pair, source):
    out = pair.both("tar -xf $TAR; tar -df $TAR; tar -cf - --sort=name source | sha256sum",
                    TAR=source.parent / "source.tar")
    assert_equal_text(*out)
    pair.assert_equal(times=True)
    assert_equal_snapshots(snapshot(source, times=True), snapshot(pair.shunt / "source", times=True))


def without_directory_sizes(listing):
    """`ls -l` without what a file system decides: the blocks in all, and the size and links of a directory."""
    lines = [line for line in listing.splitlines() if not line.startswith("total ")]
    return "\n".join(re.sub(r"^(d\S+) +\d+ (\S+ +\S+) +\d+ ", r"\1 N \2 N ", line) for line in lines)


@pytest.mark.large
def test_ls_lists_recursively(extracted):
    native, shunt = extracted.both("ls -lR --time-style=full-iso $ROOT/source; cd source; ls -lRA --time-style=full-iso")
    assert native.count("\n") > 2 * LEAST_FILES
    assert_equal_text(re.sub(" +", " ", without_directory_sizes(native)),
                      re.sub(" +", " ", without_directory_sizes(shunt)))


@pytest.mark.large
def test_find_finds(extracted):
    native, shunt = extracted.both(
        "find . -mindepth 1 -printf '%P %y %m %U %G %T@ %l\\n' | LC_ALL=C sort;"
        "find $ROOT -type f -name '*.c' -size +8k -newermt 2001-01-01 | LC_ALL=C sort;"
        "find source -empty | LC_ALL=C sort; find source -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum")
    assert native.count("\n") > 2 * LEAST_FILES
    assert_equal_text(native, shunt)


@pytest.mark.large
def test_du_measures_files(extracted):
    def files(listing, root):
        lines = (line.split("\t", 1) for line in listing.splitlines())
        return "\n".join(sorted(f"{name} {size}" for size, name in lines if name not in directories(root)))

    def directories(root):
        if root not in known:
            known[root] = {f"ROOT/{path.relative_to(root)}" if path != root else "ROOT"
                           for path in [root, *root.rglob("*/")]}
        return known[root]

    known = {}
    native, shunt = extracted.both("du -a -b $ROOT/source")
    assert native.count("\n") > LEAST_FILES
    # The trunk has every directory, so the native names serve for both.
    assert_equal_text(files(native, extracted.native), files(shunt, extracted.native))


@pytest.mark.large
def test_cp_copies_into_and_within(pair, source):
    pair.both("cp -a $SOURCE a; cp -a a b; diff -r a b", SOURCE=source)
    pair.assert_equal(times=True)
    assert_equal_snapshots(snapshot(source, times=True), snapshot(pair.shunt / "b", times=True))


@pytest.mark.large
def test_rsync_copies_and_then_has_nothing_to_do(pair, source):
    out = pair.both("rsync -a $SOURCE/ a; rsync -a a/ b; echo again; rsync -a -i $SOURCE/ a; rsync -a -i -c a/ b;"
                    "echo changed; echo new >> a/net/Makefile; rm a/net/Kconfig; rsync -a -i --delete a/ b",
                    SOURCE=source)
    assert_equal_text(*out)
    assert out[1].startswith("again\nchanged\n")
    pair.assert_equal(times=False)
    assert_equal_snapshots(snapshot(pair.native / "a" / "Documentation", times=True),
                           snapshot(pair.shunt / "b" / "Documentation", times=True))


@pytest.mark.large
def test_rm_removes_all(pair, source):
    out = pair.both("tar -xf $TAR; rm -r source/net; find . | LC_ALL=C sort; rm -r source; ls -A",
                    TAR=source.parent / "source.tar")
    assert_equal_text(*out)
    assert not redirected_files(pair.shunt)
    pair.assert_equal()
    assert not list(pair.shunt.iterdir())


GIT = """
export HOME=$ROOT/../git-home GIT_CONFIG_NOSYSTEM=1 GIT_AUTHOR_NAME=A GIT_AUTHOR_EMAIL=a@example.org
export GIT_COMMITTER_NAME=C GIT_COMMITTER_EMAIL=c@example.org
export GIT_AUTHOR_DATE='1700000000 +0000' GIT_COMMITTER_DATE='1700000000 +0000'
mkdir -p $HOME
git config --global init.defaultBranch main
git config --global pack.threads 1
git config --global gc.auto 0
git config --global advice.detachedHead false
git init -q origin
cp -r $SOURCE origin/net
(cd origin; git add .; git commit -q -m one; git tag one; git mv net/core net/moved; rm net/Kconfig
 echo more >> net/Makefile; git add -A; git commit -q -m two; git branch side; git gc -q)
git clone -q file://$ROOT/origin remote
git clone -q origin local
cd local
git status --short
for i in $(seq 40); do echo $i > net/file.$i; git add net/file.$i; git commit -q -m "file $i"; done
git checkout -q -b topic one
git log --oneline | cat
git checkout -q main
git mv net/file.1 net/file.one
git rm -q -r net/can
git stash -q; git stash pop -q
git commit -q -m moved
git checkout -q -b other one; echo x > x; git add x; git commit -q -m x
git merge -q -m merged main
git gc -q --prune=now
git fsck --full --strict
git status --short --branch
git push -q origin other
git worktree add -q ../worktree one
git log --format='%H %T %s' | cat
git ls-files -s | sha256sum
cd ../origin; git fsck --full; git log --format=%H other | cat
"""


@pytest.mark.large
def test_git_clones_commits_checks_out_and_collects(pair, source):
    # The index holds times and inode numbers, and git leaves mtimes in it; all else a second native run repeats.
    out = pair.both(GIT, SOURCE=source / "net", timeout=300)
    assert_equal_text(*out)
    pair.export()
    run(["git", "-C", pair.shunt / "local", "fsck", "--full"], timeout=120).check()
    any_content = (r".*\.git/(worktrees/[^/]*/)?index",)
    assert_equal_snapshots(snapshot(pair.native, any_content=any_content),
                           snapshot(pair.shunt, any_content=any_content))


def test_python_multiprocessing_sqlite_and_pathlib(pair):
    program = pathlib.Path(__file__).with_name("program_of_a_user.py")
    out = pair.both("/usr/bin/python3 $PROGRAM work", PROGRAM=program)
    assert_equal_text(*out)
    # Which page of a database a row lies in depends on who came first; the program has dumped the rows.
    pair.assert_equal(any_content=(r".*\.db",))


def test_sqlite_shell_shares_a_database_in_wal_mode(native_and_shunt):
    out = native_and_shunt(
        "sqlite3 wal.db 'pragma journal_mode=wal; create table t(i integer primary key, s text)';"
        "for writer in 1 2 3; do (for i in $(seq 30); do"
        "   echo \"pragma busy_timeout=30000; insert into t(s) values('$writer-$i');\"; done"
        " | sqlite3 wal.db > /dev/null) & done; wait;"
        "sqlite3 wal.db 'select s from t order by s; pragma integrity_check; pragma wal_checkpoint(truncate);'; ls -A",
        any_content=(r"wal\.db",))
    assert out[1].count("\n") > 90
    assert_equal_text(*out)


MAKEFILE = """\
CFLAGS = -O1 -MMD -MP -Iinclude
sources = $(wildcard src/*.c)
objects = $(sources:src/%.c=obj/%.o)

program: obj/main.o libparts.a
\t$(CC) -o $@ obj/main.o -L. -lparts
libparts.a: $(filter-out obj/main.o,$(objects))
\t$(AR) rcs $@ $^
obj/%.o: src/%.c | obj
\t$(CC) $(CFLAGS) -c -o $@ $<
obj:
\tmkdir -p $@
-include $(wildcard obj/*.d)
"""


def write_c_project(directory, parts=30):
    """A main program, a static library of `parts` objects, and headers that include each other."""
    (directory / "src").mkdir(parents=True)
    (directory / "include").mkdir()
    (directory / "Makefile").write_text(MAKEFILE)
    (directory / "include" / "common.h").write_text("#include <stdio.h>\n#define STEP 1\n")
    for n in range(parts):
        (directory / "include" / f"part{n}.h").write_text(f'#include "common.h"\nint part{n}(int);\n')
        below = f"part{n - 1}(x)" if n else "x"
        include = f'#include "part{n - 1}.h"\n' if n else ""
        (directory / "src" / f"part{n}.c").write_text(
            f'#include "part{n}.h"\n{include}int part{n}(int x)\n{{\n    return {below} + STEP;\n}}\n')
    (directory / "src" / "main.c").write_text(
        f'#include "part{parts - 1}.h"\nint main(int argc, char **argv)\n{{\n'
        f'    printf("%d %d\\n", argc, part{parts - 1}(argc));\n    return 0;\n}}\n')


@pytest.mark.unsanitized
def test_make_builds_a_c_project_in_parallel(pair, area):
    write_c_project(area / "project")
    out = pair.both(
        "cp -r $PROJECT project; cd project; make -s -j2; ./program; $ROOT/project/program a b; make -j2;"
        "sed -i 's/STEP 1/STEP 2/' include/common.h; make -j2 | grep -c -- -MMD; ./program;"
        "touch src/part3.c; make -s -n | grep -c -- '-c -o'; strip program; ./program; nm libparts.a | sort",
        PROJECT=area / "project")
    assert_equal_text(*out)
    assert "is up to date" in out[1] and out[1].startswith("1 31\n3 33\n")
    pair.assert_equal()


ANALYSED = r"""
cat >program.c <<'END'
#include <stdio.h>
int main(int count, char **words)
{
    FILE *file = fopen("made", "w");
    fprintf(file, "%d %s\n", count, words[count - 1]);
    return fclose(file) + rename("made", words[count - 1]);
}
END
gcc -o program program.c; mkdir bin; cp program bin/on_path; cp program bin/linked; ln -s bin/linked link
printf '#!/bin/sh\n./program three\n' >script; chmod +x script
analysed() { valgrind -q "$@" 2>&1 || echo "status $?"; }
analysed ./program one
PATH=$ROOT/bin:$PATH analysed --tool=none -- on_path two
touch log; analysed --tool=none --log-file=log $ROOT/script
printf '{\n own\n Memcheck:Leak\n fun:malloc\n}\n' >rules; analysed --suppressions=rules ./link four
analysed --tool=none none/such
echo --suppressions=none/such >.valgrindrc; analysed ./program five | grep -c none/such
cat one two three four; ls -A
"""


@pytest.mark.unsanitized
def test_valgrind_runs_a_program_that_was_just_built(native_and_shunt):
    native, shunt = native_and_shunt(ANALYSED, any_content=("log",))
    assert native.startswith("valgrind: none/such: No such file or directory\nstatus 127\n")
    assert_equal_text(native, shunt)


FIO = """
options="--directory=$ROOT/fio --nrfiles=1500 --filesize=4k --numjobs=2 --openfiles=1 --fallocate=none"
mkdir fio
fio --name=files --ioengine=filecreate --create_on_open=1 $options > fio.out
ls fio | wc -l
fio --name=files --ioengine=filestat $options >> fio.out
ls fio | wc -l
fio --name=files --ioengine=filedelete $options >> fio.out
ls -A fio
grep -o 'err= *[0-9]*' fio.out
rm fio.out
"""


def test_fio_creates_stats_and_deletes(pair):
    out = pair.both(FIO)
    assert_equal_text(*out)
    assert out[1].splitlines() == ["3000", "3000", *["err= 0"] * 6]
    pair.assert_equal()


def test_bonnie_makes_stats_and_removes(pair):
    user = "-u root" if os.geteuid() == 0 else ""
    _, shunt = pair.both(f"bonnie++ -q -d $ROOT -s 0 -n 4:4096:0:4 -m machine {user} 2>/dev/null")
    assert shunt.count(",") > 20
    assert not redirected_files(pair.shunt)
    pair.assert_equal()
