"""Which certificate authorities this host trusts. Without any, no `https` webhook can be posted."""

import os
import re

NONE_TRUSTED = (
    "this host trusts no certificate authority, so no https webhook gets its alerts; install"
    " ca-certificates, or name a file with certificates in SSL_CERT_FILE"
)
_HASHED_NAME = re.compile(r"[0-9a-f]{8}\.[0-9]+")
"""A file's name by which OpenSSL finds a certificate in a folder."""


def trusted() -> str | None:
    """What is trusted, as `doctor` shows it; None if nothing is."""
    import ssl  # noqa: PLC0415 - takes long, and the start must not wait for it

    count = len(ssl.create_default_context().get_ca_certs())
    if count:
        return f"{count} certificate authorities are trusted"
    # Certificates in a folder are loaded when they are needed, so they are not counted above.
    folder = ssl.get_default_verify_paths().capath
    if folder and any(map(_HASHED_NAME.fullmatch, os.listdir(folder))):
        return f"the certificate authorities in {folder} are trusted"
    return None
