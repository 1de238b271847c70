# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
# bash completion for shunt: subcommands and options are asked of the command itself.

_shunt()
{
    local word=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} subcommand=${COMP_WORDS[1]} words i
    COMPREPLY=()
    compopt -o filenames 2>/dev/null
    if ((COMP_CWORD == 1)); then
        words=$("$1" --help | sed -n 's/^  \([a-z]*\) .*/\1/p')
        mapfile -t COMPREPLY < <(compgen -W "$words --help --version" -- "$word")
        return
    fi
    for ((i = 2; i < COMP_CWORD; i++)); do
        if [[ ${COMP_WORDS[i]} == -- ]]; then
            mapfile -t COMPREPLY < <(compgen -c -- "$word"; compgen -f -- "$word")
            return
        fi
    done
    case $subcommand:$previous in
    help:*)
        mapfile -t COMPREPLY < <(compgen -W "$("$1" --help | sed -n 's/^  \([a-z]*\) .*/\1/p') --help" -- "$word") ;;
    stop:--export) mapfile -t COMPREPLY < <(compgen -W "$(_shunt_options "$1" stop)" -- "$word") ;; # it takes no word
    *:--export) mapfile -t COMPREPLY < <(compgen -W 'now background later later,submit never' -- "$word") ;;
    *:--container) mapfile -t COMPREPLY < <(compgen -W 'podman apptainer bwrap' -- "$word") ;;
    *:--user | cleanup:-u) mapfile -t COMPREPLY < <(compgen -u -- "$word") ;;
    *:--hosts) mapfile -t COMPREPLY < <(compgen -f -- "$word") ;;
    *:--host | doctor:-H) mapfile -t COMPREPLY < <(compgen -A hostname -- "$word") ;;
    *:--placement | *:-p) mapfile -t COMPREPLY < <(compgen -W 'auto branch' -- "$word") ;;
    mount:--log | mount:-l) mapfile -t COMPREPLY < <(compgen -f -- "$word") ;;
    *:--root | run:-r | start:-r | exec:-r | env:-r | stop:-r | status:-r | doctor:-r | export:* | fsck:* | names:* | mount:* | umount:*)
        mapfile -t COMPREPLY < <(compgen -d -- "$word")
        [[ $word != -* ]] || mapfile -t COMPREPLY < <(compgen -W "$(_shunt_options "$1" "$subcommand")" -- "$word") ;;
    bench:--operations | bench:-o | bench:--neighbour | bench:-b)
        _shunt_list "$word" create open stat utime readdir rename unlink ;;
    bench:--configurations | bench:-c) _shunt_list "$word" private shared shunt shunt-private ;;
    find:-type) mapfile -t COMPREPLY < <(compgen -W 'f d l p s b c' -- "$word") ;;
    *)
        if [[ $word == -* ]]; then
            mapfile -t COMPREPLY < <(compgen -W "$(_shunt_options "$1" "$subcommand")" -- "$word")
        else
            mapfile -t COMPREPLY < <(compgen -f -- "$word")
        fi ;;
    esac
}

# _shunt_list WORD NAME...: the last of the names in WORD, which are separated by commas.
_shunt_list()
{
    local before=
    [[ $1 != *,* ]] || before=${1%,*},
    mapfile -t COMPREPLY < <(compgen -P "$before" -W "${*:2}" -- "${1##*,}")
}

_shunt_options()
{
    echo --help
    "$1" "$2" --help | sed -n 's/^  \(-[A-Za-z0-9], \)\{0,1\}\(-[-a-z0-9]*\).*/\2/p'
}

complete -F _shunt shunt
