#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""packages.py BUILD: what packaging/ says is so of this build: each installed file is in one Debian package and in one rpm
package, each library that meson.build asks for is asked for by each package, and all have its version. Whether the packages
build and install is for packaging/test.sh. The exit status is 1 if something of that is not so."""

import fnmatch
import json
import pathlib
import re
import subprocess
import sys

SOURCE = pathlib.Path(__file__).resolve().parents[2]
PACKAGING = SOURCE / "packaging"
SPEC = (PACKAGING / "rpm" / "shunt.spec").read_text()
RECIPE = (PACKAGING / "spack" / "package.py").read_text()
CONTROL = (PACKAGING / "debian" / "control").read_text()
# As rpm and Fedora have them.
MACROS = {"_bindir": "usr/bin", "_libexecdir": "usr/libexec", "_libdir": "usr/lib64", "_datadir": "usr/share",
          "_mandir": "usr/share/man", "_includedir": "usr/include", "_sysconfdir": "etc"}


def installed(build):
    """The installed files, below / as a package has them, with {libdir} as it is in this build."""
    said = subprocess.run(["meson", "introspect", "--installed", "--buildoptions", build], capture_output=True, text=True, check=True)
    said = json.loads(said.stdout)
    options = {option["name"]: option["value"] for option in said["buildoptions"]}
    files = sorted(path.replace(options["prefix"], "/usr", 1).lstrip("/") for path in said["installed"].values())
    return files, "usr/" + options["libdir"]


def debian_claims():
    for path in sorted((PACKAGING / "debian").glob("*.install")):
        for pattern in path.read_text().split():
            yield path.stem, pattern


def rpm_claims():
    for name, section in re.findall(r"^%files *(.*)\n((?:(?!%files|%changelog|%if).*\n)*)", SPEC, re.M):
        for line in section.splitlines():
            if line.startswith("%{"):
                yield name or "shunt", re.sub(r"%\{(\w+)\}", lambda macro: MACROS[macro.group(1)], line.split()[-1])


def holds(pattern, path):
    """Does the pattern stand for the file, or for a directory that it is in?"""
    return any(fnmatch.fnmatchcase("/".join(path.split("/")[:depth]), pattern) for depth in range(1, path.count("/") + 2))


def faults_of_claims(kind, claims, files):
    for path in files:
        owners = {name for name, pattern in claims if holds(pattern, path)}
        if len(owners) != 1:
            yield f"{kind}: /{path}: is in {', '.join(sorted(owners)) or 'no package'}"
    for name, pattern in claims:
        if not name.endswith("slurm") and not any(holds(pattern, path) for path in files):
            yield f"{kind}: {name}: {pattern}: no such file is installed"


def faults_of_versions(version):
    for of, pattern, text in (("debian/changelog", r"^shunt \((.*)-\d+\)", (PACKAGING / "debian" / "changelog").read_text()),
                              ("rpm/shunt.spec", r"^Version: *(.*)", SPEC),
                              ("spack/package.py", r'version\("([^"]*)"', RECIPE)):
        found = re.search(pattern, text, re.M).group(1)
        if found != version:
            yield f"packaging/{of}: is of version {found} (meson.build: {version})"


def faults_of_dependencies(build_file):
    for name in re.findall(r"^\w+ = dependency\('(lib\w+|lmdb)'\)", build_file, re.M) + ["libfabric"]:
        if f"pkgconfig({name})" not in SPEC:
            yield f"packaging/rpm/shunt.spec: does not ask for {name}"
        if f'depends_on("{name}' not in RECIPE and f'depends_on("{name.removeprefix("lib")}' not in RECIPE:
            yield f"packaging/spack/package.py: does not ask for {name}"
    for name in re.findall(r"^build (lib(?!c6-|openmpi-)\S+-dev)", (SOURCE / "tests" / "packages.txt").read_text(), re.M):
        if not re.search(rf"^ {name}\b", CONTROL, re.M):
            yield f"packaging/debian/control: does not ask for {name}"


def main():
    files, libdir = installed(sys.argv[1])
    build_file = (SOURCE / "meson.build").read_text()
    version = re.search(r"version: '([^']*)'", build_file).group(1)
    debian = [(name, pattern.replace("usr/lib/*", libdir)) for name, pattern in debian_claims()]
    rpm = [(name, pattern.replace("usr/lib64", libdir)) for name, pattern in rpm_claims()]
    faults = [*faults_of_claims("deb", debian, files), *faults_of_claims("rpm", rpm, files), *faults_of_versions(version),
              *faults_of_dependencies(build_file)]
    print("\n".join(faults) if faults else f"{len(files)} files are in one package each")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
