#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
# git_script.sh: some hundred git commands in the working directory. Every name, date and choice is fixed, so that two
# runs print and leave the same. What has no other output is shown by `state`.
set -eu -o pipefail

top=$PWD
export HOME=$top/home GIT_CONFIG_NOSYSTEM=1 GIT_AUTHOR_NAME=A GIT_AUTHOR_EMAIL=a@example.org
export GIT_COMMITTER_NAME=C GIT_COMMITTER_EMAIL=c@example.org GIT_PAGER=cat GIT_EDITOR=true
clock=1700000000

# Each commit has a second of its own.
tick() {
    clock=$((clock + 1))
    export GIT_AUTHOR_DATE="$clock +0000" GIT_COMMITTER_DATE="$clock +0000"
}

commit() {
    tick
    git commit -q "$@"
}

# Runs what may fail, and tells how it ended.
status_of() {
    local status=0
    tick
    "$@" || status=$?
    echo "status $status of: ${*//$top/TOP}"
}

# All that git knows of this repository.
state() {
    echo "== $1"
    git for-each-ref --format='%(refname) %(objectname) %(objecttype)'
    git symbolic-ref -q HEAD || git rev-parse HEAD
    git status --short --branch --ignored
    git ls-files -s | sha256sum
    git write-tree 2>/dev/null || echo "unmerged: $(git ls-files -u | wc -l)"
    git log --all --graph --format='%h %T %s' | tail -n 15
    git fsck --full --strict 2>&1 | LC_ALL=C sort
}

settings() {
    mkdir -p "$HOME"
    git config --global init.defaultBranch main
    git config --global pack.threads 1
    git config --global gc.auto 0
    git config --global maintenance.auto false
    git config --global advice.detachedHead false
    git config --global protocol.file.allow always
    git config --global rerere.enabled true
    git config --global core.fsync all
}

# A tree with directories, links, modes, odd names and binary content.
populate() {
    local i
    mkdir -p src/deep/er doc 'odd names'
    for i in $(seq 60); do
        seq "$i" $((i + 40)) > "src/part$i.c"
        echo "page $i" > "doc/page-$i.txt"
    done
    for i in $(seq 20); do seq "$i" | sort > "src/deep/er/leaf$i"; done
    echo space > 'odd names/a b'
    echo bytes > $'odd names/\xff\xfe'
    echo newline > $'odd names/new\nline'
    head -c 100000 /dev/zero | noise > noise.bin
    ln -s src/part1.c link
    ln -s missing dangling
    ln -s src directory-link
    printf '#!/bin/sh\necho ran\n' > tool.sh
    chmod +x tool.sh
    printf '*.o\nbuild/\n' > .gitignore
    printf '*.bin binary\n*.txt text\n' > .gitattributes
}

# Bytes that do not compress and are the same each time.
noise() {
    python3 -c 'import hashlib, sys
sys.stdin.buffer.read()
block = b"seed"
for _ in range(3000):
    block = hashlib.sha256(block).digest()
    sys.stdout.buffer.write(block)'
}

begin() {
    git init -q work
    cd work
    populate
    git add .
    commit -m first
    git tag -a -m 'the first' v1
    state begin
}

many_commits() {
    local i
    for i in $(seq 40); do
        echo "line $i" >> "src/part$i.c"
        [ $((i % 5)) -ne 0 ] || git rm -q "doc/page-$i.txt"
        [ $((i % 7)) -ne 0 ] || git mv "src/part$i.c" "src/deep/moved$i.c"
        git add -A
        commit -m "change $i"
    done
    git log --follow --format=%s src/deep/moved7.c
    git blame -s src/part3.c | tail -n 3
    git diff --stat v1 HEAD | tail -n 5
    state many_commits
}

branches_and_merges() {
    local i
    for i in 1 2 3 4 5; do
        git checkout -q -b "topic$i" v1
        echo "topic $i" > "topic$i.txt"
        echo "topic $i" >> "src/part$((50 + i)).c"
        git add .
        commit -m "topic $i"
        git checkout -q main
    done
    tick; git merge -q --no-ff -m 'merge 1' topic1
    tick; git merge -q -m octopus topic2 topic3
    tick; git merge -q --squash topic4 > /dev/null
    commit -m squashed
    git checkout -q -b conflicting v1
    echo theirs > src/part51.c
    git rm -q doc/page-1.txt
    commit -a -m conflicting
    git checkout -q main
    echo ours > doc/page-1.txt
    commit -a -m ours
    status_of git merge -q -m conflicts conflicting
    git diff --name-only --diff-filter=U
    git checkout -q --theirs src/part51.c
    git rm -q doc/page-1.txt
    git add -A
    commit -m resolved
    status_of git merge --abort 2>/dev/null
    git branch --merged | cat
    state branches_and_merges
}

rebases_and_picks() {
    git checkout -q -b rebased topic5
    for i in a b c d; do
        echo $i > "rebase-$i"
        git add "rebase-$i"
        commit -m "rebase $i"
    done
    tick; git rebase -q main
    tick; GIT_SEQUENCE_EDITOR="sed -i -e '2s/pick/squash/' -e '3s/pick/drop/'" git rebase -q -i HEAD~4
    git checkout -q -b picked v1
    tick; git cherry-pick topic2 topic3 > /dev/null
    status_of git cherry-pick conflicting~0 > /dev/null
    status_of git cherry-pick topic4 > /dev/null 2>&1
    tick; git revert --no-edit HEAD > /dev/null
    git format-patch -q -o ../patches v1
    git checkout -q -b applied v1
    tick; git am -q ../patches/*
    git diff --exit-code applied picked
    git checkout -q main
    state rebases_and_picks
}

stashes_and_resets() {
    echo dirty >> src/part1.c
    echo new > untracked
    tick; git stash push -q -u -m one
    echo other >> src/part2.c
    git add src/part2.c
    tick; git stash push -q --staged -m two
    git stash list
    tick; git stash pop -q stash@{1}
    git stash show -p stash@{0} | tail -n 4
    tick; git stash apply -q
    git status --short
    git stash drop -q
    git checkout -q -- src/part1.c
    git restore --staged --worktree src/part2.c
    git clean -fdxq
    git reset -q --soft HEAD~1
    git reset -q --hard ORIG_HEAD
    git rm -q -r --cached doc
    git reset -q
    git rm -q -r doc
    git checkout -q HEAD -- doc
    git reflog --format='%gd %gs' | sed -n 1,12p
    state stashes_and_resets
}

bisecting() {
    git bisect start HEAD v1 > /dev/null
    tick; git bisect run sh -c '! grep -q "line 23" src/part23.c' | grep 'first bad commit'
    git bisect log | tail -n 2
    git bisect reset 2> /dev/null
    state bisecting
}

hooks() {
    local hook
    for hook in pre-commit commit-msg post-commit post-checkout pre-push post-merge; do
        printf '#!/bin/sh\necho "%s $#" >> "$(git rev-parse --git-common-dir)/hooks.log"\n' "$hook" > ".git/hooks/$hook"
        chmod +x ".git/hooks/$hook"
    done
    echo hooked > hooked
    git add hooked
    commit -m hooked
    printf '#!/bin/sh\necho refused; exit 3\n' > .git/hooks/pre-commit
    echo refused >> hooked
    status_of git commit -q -a -m refused 2>&1
    rm .git/hooks/pre-commit
    commit -a -m 'not refused'
    git checkout -q topic1
    git checkout -q -
    LC_ALL=C sort .git/hooks.log | uniq -c
    state hooks
}

worktrees() {
    git worktree add -q ../tree1 topic1
    git worktree add -q -b in-tree ../tree2 v1
    (cd ../tree2
     echo in-tree > in-tree
     git add in-tree
     commit -m in-tree)
    tick
    git worktree move ../tree1 ../moved-tree
    git worktree lock ../moved-tree
    status_of git worktree remove ../moved-tree 2>&1 | sed "s,$top,TOP,g"
    git worktree unlock ../moved-tree
    rm -r ../moved-tree
    git worktree prune -v 2>&1
    git worktree list | sed -e "s,$top,TOP," -e 's/  */ /g'
    git sparse-checkout set src doc
    ls -A
    git sparse-checkout disable
    state worktrees
}

clones_and_remotes() {
    cd "$top"
    git clone -q --bare work central.git
    git clone -q central.git local
    git clone -q --depth 3 "file://$top/central.git" shallow
    git clone -q --shared central.git shared
    git clone -q --mirror "file://$top/central.git" mirror.git
    cd local
    for i in $(seq 10); do
        echo "pushed $i" > "pushed$i"
        git add .
        commit -m "pushed $i"
        git push -q origin main
    done
    git push -q origin HEAD:refs/heads/elsewhere :topic3
    git tag light
    git push -q --tags
    cd ../work
    git remote add central ../central.git
    tick; git fetch -q --prune central
    tick; git pull -q --ff-only central main
    git -C ../mirror.git remote update > /dev/null 2>&1
    git -C ../shallow fetch -q --unshallow
    git bundle create -q ../all.bundle --all
    git clone -q ../all.bundle ../from-bundle
    state clones_and_remotes
    for repository in central.git local shallow shared mirror.git from-bundle; do
        (cd "$top/$repository"; git for-each-ref; git fsck --full; git rev-list --all | wc -l)
    done
}

submodules() {
    tick; git submodule add -q ../central.git sub/central 2>&1
    commit -m 'a submodule'
    git submodule status | cat
    cd "$top"
    git clone -q --recurse-submodules work with-sub 2>&1
    cd with-sub/sub/central
    git checkout -q -b in-sub
    echo sub > in-sub
    git add in-sub
    commit -m in-sub
    cd ../..
    git add sub/central
    commit -m 'a newer submodule'
    git submodule foreach -q 'git log -1 --format=%s'
    git submodule deinit -q -f sub/central
    git -C ../work rm -q -f sub/central
    cd ../work
    commit -m 'no submodule'
    state submodules
}

collecting() {
    git count-objects -v | grep -v -e size -e garbage
    git repack -q -a -d -f --depth=20 --window=20
    git prune-packed
    git pack-refs --all
    git reflog expire --expire=now --all
    git branch -q -D topic4 conflicting
    git gc -q --prune=now --aggressive
    git commit-graph write --reachable
    git multi-pack-index write
    git multi-pack-index verify
    git verify-pack -s .git/objects/pack/pack-*.idx
    git count-objects -v | grep -v -e size -e garbage
    git rev-list --objects --all | wc -l
    git archive --format=tar HEAD | sha256sum
    git fast-export --all | sha256sum
    git init -q "$top/imported"
    git fast-export --all | git -C "$top/imported" fast-import --quiet
    git -C "$top/imported" for-each-ref
    (cd "$top/imported"; git checkout -q main; git status --short)
    state collecting
}

settings
for part in begin many_commits branches_and_merges rebases_and_picks stashes_and_resets bisecting hooks worktrees \
    clones_and_remotes submodules collecting; do
    tick
    "$part"
done
