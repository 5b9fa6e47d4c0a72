"""What the driver of a database's server may be told by an address, in the `?name=value` behind it.

Drivers take more than that from there, and some of it loads code: MySQL's `plugin_dir`, `plugin` of SQLAlchemy; to
PostgreSQL's a key with a colon is a library that reads keys, and `options` may name one that its server loads. Other
options send files of this machine to where the address leads. So what may be told is listed, in the words of libpq and
PyMySQL.
"""

from __future__ import annotations

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

ALLOWED = {
    "postgresql": (
        "application_name", "channel_binding", "client_encoding", "connect_timeout", "gssencmode", "host",
        "keepalives", "keepalives_count", "keepalives_idle", "keepalives_interval", "password", "require_auth",
        "ssl_max_protocol_version", "ssl_min_protocol_version", "sslcert", "sslcrl", "sslkey", "sslmode", "sslrootcert",
        "sslsni", "target_session_attrs", "tcp_user_timeout",
    ),
    "mysql": (
        "charset", "collation", "connect_timeout", "password", "read_timeout", "ssl_ca", "ssl_cert",
        "ssl_check_hostname", "ssl_key", "ssl_verify_cert", "ssl_verify_identity", "unix_socket", "use_unicode",
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
    # Spelled otherwise, as with %61 in the place of an a, a secret's name would not be known as one.
    written_out = {part.partition("=")[0] for part in uri.rpartition("@")[2].partition("?")[2].split("&")}
    for name, value in url.query.items():
        if name not in allowed or name not in written_out:
            return f"must have no option but {', '.join(allowed)}, written out, behind its `?`, has {name!r}"
        if name == "sslkey" and ":" in "".join(value):
            return "must name a file as sslkey, without a colon"
    if socket_of(url) is None and {"host", "unix_socket"} & set(url.query):
        return "must name the host before the database; host= is for the folder of a socket, as /var/run/postgresql"
    return None


def socket_of(url: URL) -> str | None:
    """The path of the socket on this machine through which a database is reached."""
    folder, path = url.query.get("host"), url.query.get("unix_socket")
    if isinstance(folder, str) and folder.startswith("/"):
        return f"{folder}/.s.PGSQL.{url.port or 5432}"
    return path if isinstance(path, str) and path.startswith("/") else None
