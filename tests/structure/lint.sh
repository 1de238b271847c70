#!/bin/bash
# lint.sh: layout by clang-format 14 (.clang-format), and cppcheck without findings on lib/, daemon/ and tools/
# (tests/structure/cppcheck.txt says what is no fault). The exit status is 1 if either has something to say.
set -u -o pipefail

cd "$(dirname "$(readlink -f "$0")")/../.." || exit 1
status=0

format=$(command -v clang-format-14 || command -v clang-format)
if "$format" --version 2>/dev/null | grep -q 'version 14\.'; then
    find lib daemon tools tests include examples -name '*.[ch]' -print0 |
        xargs -0 "$format" --dry-run -Werror || status=1
else
    echo "lint.sh: layout is not checked: that takes clang-format 14" >&2
fi

cppcheck -j"$(nproc)" --quiet --std=c17 --enable=warning,portability --error-exitcode=1 --inline-suppr \
    --suppressions-list=tests/structure/cppcheck.txt --suppress=missingInclude --suppress=missingIncludeSystem \
    -D__x86_64__ -D_GNU_SOURCE -D__clang_analyzer__ -Ilib -Idaemon -Itools -Iinclude lib daemon tools || status=1
exit $status
