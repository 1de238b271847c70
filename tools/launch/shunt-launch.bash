# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
# bash completion for shunt-launch: options are asked of the command itself; behind them any command.

_shunt_launch()
{
    local word=${COMP_WORDS[COMP_CWORD]} i
    COMPREPLY=()
    compopt -o filenames 2>/dev/null
    for ((i = 1; i < COMP_CWORD; i++)); do
        case ${COMP_WORDS[i]} in
        -r | --root | -p | --placement | -f | --leaf-full | --fake-nodes | --hosts | --export) ((i++)) ;;
        -?*) [[ ${COMP_WORDS[i]} != -- ]] || break ;;
        *) break ;;
        esac
    done
    if ((i < COMP_CWORD)); then
        mapfile -t COMPREPLY < <(compgen -c -- "$word"; compgen -f -- "$word")
        return
    fi
    case ${COMP_WORDS[COMP_CWORD - 1]} in
    --export) mapfile -t COMPREPLY < <(compgen -W 'now background later later,submit never' -- "$word") ;;
    --placement | -p) mapfile -t COMPREPLY < <(compgen -W 'auto branch' -- "$word") ;;
    --root | -r) mapfile -t COMPREPLY < <(compgen -d -- "$word") ;;
    --hosts) mapfile -t COMPREPLY < <(compgen -f -- "$word") ;;
    --fake-nodes | --leaf-full | -f) ;;
    *)
        if [[ $word == -* ]]; then
            mapfile -t COMPREPLY < <(compgen -W "$("$1" --help |
                sed -n 's/^  \(-[A-Za-z0-9], \)\{0,1\}\(-[-a-z0-9]*\).*/\2/p') --help" -- "$word")
        else
            mapfile -t COMPREPLY < <(compgen -c -- "$word")
        fi ;;
    esac
}

complete -F _shunt_launch shunt-launch
