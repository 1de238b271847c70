# Copyright Spack Project Developers. See COPYRIGHT file for details.
#
# SPDX-License-Identifier: (Apache-2.0 OR MIT)
import os

from spack_repo.builtin.build_systems.meson import MesonPackage

from spack.package import conflicts, depends_on, license, variant, version


class Shunt(MesonPackage):
    """Lets many processes on many nodes create, open, stat, rename and remove files in one
    shared directory of a parallel file system at the speed of private directories."""

    # The release tarball lies where spack is called. It holds this file and thus cannot be named
    # here by its checksum: spack install --no-checksum, or spack checksum; spack dev-build takes
    # the working tree instead.
    url = f"file://{os.getcwd()}/shunt-0.1.0.tar.xz"
    manual_download = True

    license("BSD-3-Clause")

    version("0.1.0")

    variant("mount", default=False, description="shunt mount, by FUSE")
    variant("slurm", default=False, description="Slurm's plugin, for srun --shunt=DIR")

    depends_on("c", type="build")
    depends_on("meson@1.0.0:", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("xxhash")
    depends_on("libunwind")
    depends_on("libsodium")
    depends_on("lmdb")
    depends_on("libfabric@1.17: fabrics=tcp")
    depends_on("libfuse@3.8:", when="+mount")
    depends_on("slurm", when="+slurm")

    conflicts("platform=darwin")
    conflicts("platform=windows")

    def meson_args(self):
        options = ["-Dtests=disabled"]
        for part in ("mount", "slurm"):
            wanted = "enabled" if self.spec.satisfies(f"+{part}") else "disabled"
            options.append(f"-D{part}={wanted}")
        return options
