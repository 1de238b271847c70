# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""Programs that work on trees: one node makes one, the others read it, and another one removes it."""

import pytest

# Some hundred files in a few directories, with links of both kinds, times and modes of their own.
TREE = """
mkdir -p tree/a/b tree/c
for i in $(seq 60); do echo content-$i >tree/a/$i; echo other-$i >tree/a/b/$i; done
for i in $(seq 10); do ln tree/a/$i tree/c/hard$i; ln -s ../a/$i tree/c/soft$i; done
chmod 600 tree/a/1; chmod 755 tree/a/2; touch -d 2020-02-02 tree/a/3; : >tree/empty
"""
TOLD = "find tree -type f -printf '%P %m %n %s\\n' -o -type l -printf '%P %l\\n' | sort; find tree -type f | sort | xargs cat | cksum"


def test_tar_and_rm(session):
    first, last = session.nodes[0], session.nodes[-1]
    session.sh(first, TREE)
    must = session.sh(first, TOLD)
    assert len(must.splitlines()) == 142
    session.sh(last, "tar -cf tree.tar tree && mkdir copy && tar -xf tree.tar -C copy")
    for node in session.nodes:
        assert session.sh(node, f"cd copy; {TOLD}") == session.sh(node, TOLD) == must
    session.sh(first, "rm -r copy tree.tar")
    session.sh(last, "rm -r tree")
    assert [session.names(node) for node in session.nodes] == [[]] * len(session.nodes)
    for node in session.nodes:
        session.sh(node, f"mkdir -p tree && echo {node} >tree/{node}")
    assert session.names(first, "tree") == list(map(str, session.nodes))


@pytest.mark.long
def test_git(session):
    """Clones, commits and pulls of several nodes, one after the other; then one gives all of it up."""
    git = "git -c user.name=n -c user.email=n@example.org -c init.defaultBranch=main -c gc.auto=0 -c safe.directory='*'"
    first, last = session.nodes[0], session.nodes[-1]
    session.sh(first, f"{git} init -q --bare common; {git} clone -q common work; cd work; for i in $(seq 20); do echo $i >$i; done;"
                      f"{git} add . && {git} commit -qm first && {git} push -q origin HEAD:main")
    for node in session.nodes:
        session.sh(node, f"{git} clone -q -b main common clone{node}; cd clone{node}; echo {node} >by{node}; {git} add . &&"
                         f"{git} commit -qm 'by {node}' && {git} push -q origin main")
    session.sh(first, f"cd work; {git} pull -q origin main; {git} status --porcelain; {git} fsck --strict")
    for node in session.nodes:
        assert session.sh(node, f"cd work; {git} status --porcelain; {git} log --format=%s").split("\n")[:-1] == [
            *(f"by {number}" for number in reversed(session.nodes)), "first"]
    session.sh(last, "rm -rf common work clone*")
    assert session.names(first) == []


def test_what_is_exported_is_plain(session):
    """What all have made is in the trunk afterwards, also if the kernel of the node that exports has looked for the mirrors of the
    others before they were there, and nothing of shunt is."""
    first, *others = session.nodes
    session.sh(first, f"mkdir out; for i in $(seq 20); do echo {first}-$i >out/{first}-$i; done")
    session.stop(first)
    look = "mirror=$(basename .shunt/b/node{first}.1/out-*); ! stat .shunt/b/node{other}.1/$mirror"
    for other in others:
        session.cluster.must(first, f"cd {session.root}; {look.format(first=first, other=other)}")
        session.sh(other, f"for i in $(seq 20); do echo {other}-$i >out/{other}-$i; done")
    session.stop(*others)
    session.cluster.must(first, session.words(session.shunt, "export", session.root))
    names = sorted(f"{maker}-{i}" for maker in session.nodes for i in range(1, 21))
    assert sorted(session.cluster.must(first, f"cd {session.root}; ls -A out").split()) == names
    assert session.cluster.must(first, f"cd {session.root}; ls -A").split() == ["out"]
