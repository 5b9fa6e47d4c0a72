"""What the driver of a database's server may be told by an address, in the `?name=value` behind it.

Drivers take more than that from there, and some of it loads code: MySQL's `plugin_dir`, `plugin` of SQLAlchemy; and
to PostgreSQL's a key with a colon is a library that reads keys. Other options send files of this machine to where the
address leads. So what may be told is listed, in the words of libpq and PyMySQL.
"""

from __future__ import annotations

from sqlalchemy import make_url
from sqlalchemy.exc import ArgumentError

ALLOWED = {
    "postgresql": (
        "application_name", "channel_binding", "client_encoding", "connect_timeout", "dbname", "gssencmode", "host",
        "hostaddr", "keepalives", "keepalives_count", "keepalives_idle", "keepalives_interval", "options", "password",
        "port", "require_auth", "ssl_max_protocol_version", "ssl_min_protocol_version", "sslcert", "sslcrl", "sslkey",
        "sslmode", "sslrootcert", "sslsni", "target_session_attrs", "tcp_user_timeout", "user",
    ),
    "mysql": (
        "charset", "collation", "connect_timeout", "password", "read_timeout", "ssl_ca", "ssl_cert",
        "ssl_check_hostname", "ssl_key", "ssl_verify_cert", "ssl_verify_identity", "unix_socket", "use_unicode", "user",
        "write_timeout",
    ),
}  # fmt: skip


def option_problem(uri: str) -> str | None:
    """What is wrong with a database's address beside its scheme, told without the values that it holds."""
    try:
        url = make_url(uri)
    except (ArgumentError, ValueError):
        return "must have the form <kind>://<user>:<password>@<host>:<port>/<database>"
    allowed = ALLOWED[url.get_backend_name()]
    for name, value in url.query.items():
        # Spelled otherwise, as with %61 in the place of an a, a secret's name would not be known as one.
        if name not in allowed or f"{name}=" not in uri:
            return f"must have no option but {', '.join(allowed)}, written out, behind its `?`, has {name!r}"
        if name == "sslkey" and ":" in "".join(value):
            return "must name a file as sslkey, without a colon"
    return None
