"""Addresses that are never called, in all the ways they are written."""

from __future__ import annotations

import pytest

from socratic_bench.providers.base_urls import is_refused, is_refused_host


@pytest.mark.parametrize(
    "host",
    [
        "169.254.169.254",
        "169.254.0.1",
        "169.254.170.23",
        "169.254.43518",
        "0xA9FEA9FE",
        "0251.0376.0251.0376",
        "2852039166",
        "100.100.100.200",
        "168.63.129.16",
        "192.0.0.192",
        "fe80::1",
        "fe80::1%eth0",
        "febf::1",
        "fd00:ec2::254",
        "fd00:0ec2:0::0254",
        "fd20:ce::254",
        "::ffff:169.254.169.254",
        "::ffff:a9fe:a9fe",
        "::169.254.169.254",
        "64:ff9b::169.254.169.254",
        "2002:a9fe:a9fe::1",
    ],
)
def test_the_link_and_the_metadata_of_clouds_are_refused(host):
    assert is_refused_host(host)


@pytest.mark.parametrize(
    "address",
    ["127.0.0.1", "::1", "10.0.0.7", "192.168.1.1", "fd00::1", "203.0.113.9", "2001:db8::1"],
)
def test_this_machine_private_networks_and_all_others_are_not(address):
    assert not is_refused(address)
    assert not is_refused_host(address)


@pytest.mark.parametrize("host", ["localhost", "metadata.google.internal", "", "x" * 300, "1.2.3"])
def test_what_a_name_leads_to_is_not_known_from_it(host):
    assert not is_refused_host(host)
