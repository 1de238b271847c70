# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""The tools of HDF5 and NetCDF, over files that they made themselves."""

from suite import Suite, script


def suites():
    return [Suite("hdf5", script("hdf5_tools.sh", program="bash"), any_content=(r".*\.h5",)),
            Suite("netcdf", script("netcdf_tools.sh", program="bash"))]
