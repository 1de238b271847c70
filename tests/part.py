# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""pytest -p part --part K/N (with PYTHONPATH=tests): the K-th of N parts of the tests, K from 0. Each test is in one of them, and
neighbours, which are cases of one test mostly, are in different ones."""

import pytest


def numbers(text):
    which, of = map(int, text.split("/"))
    if not 0 <= which < of:
        raise ValueError(text)
    return which, of


def pytest_addoption(parser):
    parser.addoption("--part", type=numbers, default=(0, 1), metavar="K/N", help="only this part of the tests")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    which, of = config.getoption("--part")
    config.hook.pytest_deselected(items=[item for at, item in enumerate(items) if at % of != which])
    items[:] = items[which::of]
