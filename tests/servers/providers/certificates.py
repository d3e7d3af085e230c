"""Certificates of servers over TLS, signed by themselves."""

from __future__ import annotations

import shutil
import ssl
import subprocess
from pathlib import Path
from typing import NamedTuple

from tests.servers.discovery import missing


class Certificate(NamedTuple):
    """A server's certificate, and the context to serve with it."""

    trusted: Path
    """The file that a client has to trust."""

    context: ssl.SSLContext


def certificate_for(subject: str, folder: Path) -> Certificate:
    """Make a certificate for `DNS:name` or `IP:address`, as openssl writes it."""
    if shutil.which("openssl") is None:
        missing("openssl is not installed")
    trusted, private = folder / "certificate.pem", folder / "private.pem"
    words = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
    words += ["-subj", f"/CN={subject.partition(':')[2]}", "-addext", f"subjectAltName={subject}"]
    files = ["-keyout", str(private), "-out", str(trusted)]
    subprocess.run(["openssl", *words, *files], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(trusted, private)
    return Certificate(trusted, context)
