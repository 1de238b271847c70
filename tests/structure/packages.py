#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""packages.py BUILD: what packaging/ says is so of this build: each installed file is in one Debian package and in one rpm
package, each library that the build files ask for is asked for by each package, each package says which optional parts it has,
and all have its version. Whether the packages build and install is for packaging/test.sh. The exit status is 1 if something of
that is not so."""

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
# Spack's names of what pkg-config knows by another.
SPACK_NAMES = {"libxxhash": "xxhash", "fuse3": "libfuse"}
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


def asked_for():
    """The libraries that the build files of all but the tests ask pkg-config for."""
    rooms = [path for room in ("lib", "daemon", "tools") for path in (SOURCE / room).rglob("meson.build")]
    for path in [SOURCE / "meson.build", *rooms]:
        yield from re.findall(r"^\w+ = dependency\('(lib\w+|lmdb|fuse3)'", path.read_text(), re.M)


def faults_of_dependencies():
    for name in [*asked_for(), "libfabric"]:
        if f"pkgconfig({name})" not in SPEC:
            yield f"packaging/rpm/shunt.spec: does not ask for {name}"
        spack_name = SPACK_NAMES.get(name, name)
        if not re.search(rf'depends_on\("{spack_name}["@]', RECIPE):
            yield f"packaging/spack/package.py: does not ask for {spack_name}"
    for name in re.findall(r"^(?:build|packaging) (lib(?!c6-|openmpi-|criterion-)\S+-dev)", (SOURCE / "tests" / "packages.txt").read_text(), re.M):
        if not re.search(rf"^ {name}\b", CONTROL, re.M):
            yield f"packaging/debian/control: does not ask for {name}"
    # By which meson finds them; rpm packages with a .pc file ask for it by themselves.
    for of, text, word in (("debian/control", CONTROL, "pkg-config"), ("spack/package.py", RECIPE, 'depends_on("pkgconfig", type="build")')):
        if word not in text:
            yield f"packaging/{of}: does not ask for pkg-config"


def faults_of_options():
    """What meson builds wherever its headers are: each package says whether it has it, so that the same package comes of any machine."""
    options = re.findall(r"^option\('(\w+)', type: 'feature', value: 'auto'", (SOURCE / "meson_options.txt").read_text(), re.M)
    for of, text in (("debian/rules", (PACKAGING / "debian" / "rules").read_text()), ("rpm/shunt.spec", SPEC), ("spack/package.py", RECIPE)):
        for option in options:
            if f"-D{option}=" not in text and f'variant("{option}"' not in text:
                yield f"packaging/{of}: does not say -D{option}"


def main():
    files, libdir = installed(sys.argv[1])
    version = re.search(r"version: '([^']*)'", (SOURCE / "meson.build").read_text()).group(1)
    debian = [(name, pattern.replace("usr/lib/*", libdir)) for name, pattern in debian_claims()]
    rpm = [(name, pattern.replace("usr/lib64", libdir)) for name, pattern in rpm_claims()]
    faults = [*faults_of_claims("deb", debian, files), *faults_of_claims("rpm", rpm, files), *faults_of_versions(version),
              *faults_of_dependencies(), *faults_of_options()]
    print("\n".join(faults) if faults else f"{len(files)} files are in one package each")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
