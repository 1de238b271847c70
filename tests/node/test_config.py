# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""Settings in files: shunt.conf(5), `shunt config`, and what a site forbids."""

import json
import os
import re
import shutil

import manual
import pytest
from conftest import IS_SUPERUSER, REPOSITORY, assert_plain, environment, run

PAGE = REPOSITORY / "lib" / "config" / "shunt.conf.5"

pytestmark = pytest.mark.skipif(os.path.exists("/etc/shunt/shunt.conf"), reason="this host has settings of its own")


@pytest.fixture
def files(area, shunt):
    """files(site=..., user=..., **variables): the environment of a host with these files."""

    def make(site="", user="", **variables):
        (area / "site.conf").write_text(site)
        (area / "shunt.conf").write_text(user)
        return {"SHUNT_CONF": area / "site.conf", "XDG_CONFIG_HOME": area, **variables}

    return make


def settings_of(result, status=0):
    return {one["setting"]: one for one in json.loads(result.check(status))["settings"]}


def test_where_each_setting_is_from(shunt, files, area):
    known = files("deadline = 40\nstale = 20\n", "# mine\nstale = 30\n", SHUNT_PLACEMENT="branch")
    found = settings_of(shunt("config", "--json", **known))
    assert found["deadline"] == {"setting": "deadline", "value": "40", "source": "site", "line": 1, "limited": False}
    assert found["stale"] == {"setting": "stale", "value": "30", "source": "user", "line": 2, "limited": False}
    assert found["placement"]["source"] == "environment" and found["run_dir"]["source"] == "built-in"
    lines = shunt("config", **known).check().splitlines()
    assert [line.split()[0] for line in lines[:-2]] == list(found)
    assert f"stale            30                               {area}/shunt.conf:2" in lines
    assert lines[-2:] == [f"the site's file: {area}/site.conf", f"the user's file: {area}/shunt.conf"]


def test_the_pages_name_every_setting(shunt, files):
    text = shunt("config", "--json", **files("deadline = 40\n")).check()
    made = json.loads(text)
    assert text.endswith("\n}\n")
    page = manual.page_of("config")
    assert manual.keys_of(made) == manual.fields_of_json(page, "config")
    said = re.findall(r"^\.TP\n\.B ([a-z_]+)\n", PAGE.read_text(), re.M)
    assert said == [one["setting"] for one in made["settings"]]


def test_a_file_in_the_home_directory(shunt, area):
    (area / ".config").mkdir()
    (area / ".config" / "shunt.conf").write_text("deadline = 41\n")
    assert settings_of(shunt("config", "--json", HOME=area, XDG_CONFIG_HOME=""))["deadline"]["value"] == "41"
    assert settings_of(shunt("config", "--json", HOME="", XDG_CONFIG_HOME=""))["deadline"]["value"] == "30"


@pytest.mark.skipif(not IS_SUPERUSER, reason="a superuser becomes another user")
def test_the_home_directory_of_another_user(shunt, area):
    """sudo and setpriv may leave HOME as it was."""
    (area / "bin").mkdir()
    shutil.copy(shunt.path, area / "bin" / "shunt")
    (area / "home").mkdir(mode=0o700)
    for path in (area, *area.parents):
        if not path.stat().st_mode & 1:
            path.chmod(path.stat().st_mode | 0o11)
    found = run(["setpriv", "--reuid=65534", "--clear-groups", area / "bin" / "shunt", "config"], XDG_CONFIG_HOME=area / "home")
    assert found.check().endswith(f"the user's file: {area}/home/shunt.conf (there is none)\n")


def test_what_is_wrong_is_named_and_nothing_runs(shunt, files, area, root):
    known = files("deadline = soon\n", "placement\n")
    sentences = [f"shunt: {area}/site.conf:1: deadline 'soon': not a number of seconds from 1 to 86400 (correct or remove the line)",
                 f"shunt: {area}/shunt.conf:1: not of the form 'KEY = value' (correct or remove the line)"]
    for words, status in ((["config"], 1), (["ls", root], 1), (["run", "--root", root, "--", "true"], 125)):
        result = shunt(*words, **known)
        assert (result.status, result.out, result.err.splitlines()) == (status, "", sentences)
    result = run([shunt.path.parents[1] / "daemon" / "shuntd", "--root", root], **known)
    assert result.status == 2 and result.err == "\n".join(sentences).replace("shunt: ", "shuntd: ") + "\n"
    assert_plain(root)


def test_a_setting_that_is_not_known_is_ignored(shunt, files, area):
    result = shunt("config", **files("future = 1\n"))
    assert result.check() and result.err == f"shunt: {area}/site.conf:1: unknown setting 'future' is ignored (see 'shunt config')\n"


def test_a_variable_that_means_nothing(shunt, files):
    result = shunt("config", **files(SHUNT_STALE="soon"))
    assert result.status == 1
    assert result.err == "shunt: SHUNT_STALE: not a number of seconds from 1 to 86400 (correct it or unset it)\n"


@pytest.mark.parametrize("words, status", [(["exec", "--", "true"], 125), (["run", "--", "true"], 1), (["env", "--container", "bwrap"], 1)])
@pytest.mark.parametrize("variable, value, fault", [("SHUNT_STATIC", "refused", "neither serve, warn nor refuse"),
                                                    ("SHUNT_RUN_DIR", "shm", "not an absolute path"),
                                                    ("SHUNT_DEADLINE", "60s", "not a number of seconds from 1 to 86400")])
def test_no_program_runs_with_a_variable_that_means_nothing(shunt, root, words, status, variable, value, fault):
    """Also where a daemon serves already, which the variable is not for."""
    shunt("start", "--root", root).check()
    try:
        result = shunt(words[0], "--root", root, *words[1:], **{variable: value})
        assert result.status == status and result.err == f"shunt: {variable}: {fault} (correct it or unset it)\n"
    finally:
        shunt("stop", "--root", root).check()


@pytest.mark.parametrize("variable", ["SHUNT_RUN_DIR", "SHUNT_CATALOGUE_DIR"])
def test_a_directory_whose_path_is_too_long(shunt, root, variable):
    result = shunt("start", "--root", root, **{variable: "/" + "d/" * 600})
    assert result.status == 1 and result.err == f"shuntd: {variable}: the path is too long (name a shorter one)\n"


def test_a_file_that_is_named_and_not_there(shunt):
    result = shunt("config", SHUNT_CONF="/nowhere")
    assert result.status == 1 and "SHUNT_CONF: there is no file '/nowhere'" in result.err


def test_programs_are_given_what_the_files_say(shunt, files, root, run_base):
    """The run directory of a file: daemon, command and programs look for it in the same place."""
    known = files(f"run_dir = {run_base}\nplacement = branch\n")
    shunt("start", "--root", root, **known).check()
    try:
        assert os.listdir(run_base)
        script = f"mkdir {root}/d && echo x >{root}/d/a && echo $SHUNT_RUN_DIR"
        assert shunt("exec", "--root", root, "--", "sh", "-c", script, **known).check() == f"{run_base}\n"
        assert "/.shunt/b/" in shunt("where", root / "d" / "a", **known).check()
    finally:
        shunt("stop", "--root", root, **known).check()
    shunt("export", root).check()
    assert (root / "d" / "a").read_text() == "x\n"


OFF = "enabled = no\nmessage = the file system is being repaired\n"


def off_line(program, then, area):
    return (f"{program}: off on this host: the file system is being repaired, so {then} "
            f"({area}/site.conf:1 says 'enabled = no')\n")


def test_off_commands_run_natively(shunt, files, area, root):
    known = files(OFF, "enabled = yes\n", SHUNT_ENABLED="yes")
    natively = off_line("shunt", "the command runs without it", area)
    for words in (["run"], ["exec"]):
        result = shunt(*words, "--root", root, "--", "sh", "-c", "echo $LD_PRELOAD; exit 3", **known)
        assert (result.status, result.out.strip(), result.err) == (3, "", natively)
    launch = shunt.path.parent / "shunt-launch"
    result = run([launch, "--root", root, "--fake-nodes", "2", "sh", "-c", "exit 4"], **known)
    assert (result.status, result.err) == (4, off_line("shunt-launch", "the command runs without it", area))
    assert os.listdir(root) == []


def test_off_a_job_script_goes_on(shunt, files, area, root):
    known = files(OFF)
    result = shunt("start", "--root", root, **known)
    assert (result.status, result.err) == (0, off_line("shunt", "no daemon is started", area))
    shunt("stop", "--root", root, **known).check()
    shunt("export", root, **known).check()
    result = run([shunt.path.parents[1] / "daemon" / "shuntd", "--root", root], **known)
    assert result.status == 1 and result.err.startswith("shuntd: off on this host: the file system is being repaired (")
    assert os.listdir(root) == []


def test_off_files_in_branches_are_not_hidden(shunt, files, area, root):
    """A command that ran natively would miss them: it is refused, until they are exported."""
    shunt.run(root, ["sh", "-c", f"mkdir {root}/d; echo x >{root}/d/a"], keep=True).check()
    known = files(OFF)
    launch = shunt.path.parent / "shunt-launch"
    for command, status in (([shunt.path, "run"], 125), ([shunt.path, "exec"], 125), ([launch], 125), ([shunt.path, "start"], 1)):
        words = [] if command[-1] == "start" else ["--", "cat", root / "d" / "a"]
        result = run([*command, "--root", root, *words], **known)
        assert result.status == status and result.out == ""
        assert f"{root}: has files that only shunt shows, and shunt is off on this host" in result.err
        assert f"(run 'shunt export {root}', then this again; " in result.err
    shunt("export", root, **known).check()
    assert shunt("run", "--root", root, "--", "cat", root / "d" / "a", **known).check() == "x\n"


def test_off_what_is_served_goes_on(shunt, files, root, run_base):
    shunt("start", "--root", root, SHUNT_RUN_DIR=run_base).check()
    known = files(OFF, SHUNT_RUN_DIR=run_base)
    try:
        result = shunt("exec", "--root", root, "--", "sh", "-c", "echo $LD_PRELOAD", **known)
        assert "libshunt_preload.so" in result.check() and result.err == ""
    finally:
        shunt("stop", "--root", root, **known).check()


def test_a_user_turns_it_off(shunt, files, area, root):
    result = shunt("run", "--root", root, "--", "true", **files(user="enabled = no\n"))
    assert result.err == f"shunt: off on this host, so the command runs without it ({area}/shunt.conf:1 says 'enabled = no')\n"
    result = shunt("run", "--root", root, "--", "true", **files(SHUNT_ENABLED="no"))
    assert result.err == "shunt: off on this host, so the command runs without it (SHUNT_ENABLED says 'no')\n"


@pytest.mark.parametrize("rule", ["forbidden_roots = {area}/link", "forbidden_roots = /nowhere:{root}/below",
                                  "allowed_roots = {area}/other:/nowhere"])
def test_roots_that_a_site_does_not_allow(shunt, files, area, root, rule):
    (area / "link").symlink_to(root)
    known = files(rule.format(area=area, root=root) + "\n")
    for words, status in ((["start"], 1), (["run"], 1)):
        result = shunt(*words, "--root", root, *(["--", "true"] if words == ["run"] else []), **known)
        assert result.status == status
        assert result.err == (f"shuntd: {root}: no root is allowed there on this host (see '{rule.split()[0]}' in "
                              f"{area}/site.conf:1)\n")
    assert os.listdir(root) == []


def test_limits_that_hold_above_all(shunt, files, root, run_base):
    known = files("index_limit_max = 64M\nleaf_full_max = 5\n", SHUNT_INDEX_LIMIT="1G", SHUNT_RUN_DIR=run_base)
    assert settings_of(shunt("config", "--json", **known))["index_limit"]["limited"]
    shunt("start", "--root", root, "--leaf-full", "1000", "--placement", "branch", **known).check()
    try:
        (session,) = json.loads(shunt("status", "--root", root, "--json", **known).check())
        assert session["counters"]["index_limit"] == 64 << 20
        shunt("exec", "--root", root, "--", "sh", "-c", f"mkdir {root}/d; cd {root}/d; for i in 1 2 3 4 5 6; do :>$i; done",
              **known).check()
        places = shunt("where", *(root / "d" / str(i) for i in range(1, 7)), **known).check().splitlines()
        assert len({os.path.dirname(place) for place in places}) == 2
    finally:
        shunt("stop", "--root", root, **known).check()
    shunt("export", root).check()


def test_the_file_of_a_tree_that_was_moved(shunt, area):
    """From prefix/bin to prefix/etc, wherever that is now."""
    build = shunt.path.parents[1]
    (area / "bin").mkdir()
    (area / "etc" / "shunt").mkdir(parents=True)
    shutil.copy(build / "tools" / "shunt", area / "bin" / "shunt")
    (area / "etc" / "shunt" / "shunt.conf").write_text("deadline = 42\n")
    options = json.loads(run(["meson", "introspect", "--buildoptions", build]).check())
    if next(one["value"] for one in options if one["name"] == "sysconfdir").startswith("/"):
        pytest.skip("this build has another directory for configuration")
    found = json.loads(run([area / "bin" / "shunt", "config", "--json"], **{**environment(), "SHUNT_CONF": "/nowhere"}).check())
    assert found["site_file"] == f"{area}/bin/../etc/shunt/shunt.conf"
    assert [one["value"] for one in found["settings"] if one["setting"] == "deadline"] == ["42"]
