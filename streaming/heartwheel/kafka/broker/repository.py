"""Where jars come from: which Maven repository to ask, and how to ask it.

No repository is named here. The user's own settings come first; the fallback is read out of the Ivy that pyspark ships,
so this installation asks the same place that Spark itself would ask.
"""

from __future__ import annotations

import base64
import contextlib
import http.client
import importlib.util
import os
import re
import ssl
import threading
import urllib.error
import urllib.parse
import urllib.request
import xml.etree.ElementTree as ET
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, Final, cast

from heartwheel.base.errors import HeartwheelError

REPOSITORY_VARIABLES: Final = ("HEARTWHEEL_MAVEN_REPO", "DEFAULT_ARTIFACT_REPOSITORY")
"""Environment variables that may hold a repository's address, in order; Spark reads the second one itself."""

_TIMEOUT_S: Final = 30
_SCHEMES: Final = ("https", "http", "file")
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})


class RepositoryError(HeartwheelError):
    """A repository is unknown or did not hand out a file; the message is one line."""


class RepositoryTroubleError(RepositoryError):
    """A repository could not be reached or was in trouble itself: trying again may help."""


def repository_address() -> str:
    """Find the Maven repository to ask.

    Looks at `$HEARTWHEEL_MAVEN_REPO`, `$DEFAULT_ARTIFACT_REPOSITORY`, a mirror of `central` in the user's Maven
    settings, and the default that is built into pyspark's Ivy, in this order.

    Returns:
        Its address, with a slash at the end; `file:` addresses of a folder in Maven's layout are as good as `https:`.

    Raises:
        RepositoryError: if none of them names one.
    """
    named = [os.environ[name] for name in REPOSITORY_VARIABLES if os.environ.get(name)]
    address = next(iter(named), None) or _mirror_of_central(_maven_settings()) or _ivy_default()
    return address.rstrip("/") + "/"


def ivy_jar() -> Path:
    """Find the Ivy jar of the installed pyspark.

    Raises:
        RepositoryError: if pyspark, or Ivy inside it, is not there.
    """
    spec = importlib.util.find_spec("pyspark")
    folder = Path(spec.origin).parent / "jars" if spec and spec.origin else None
    found = sorted(folder.glob("ivy-*.jar")) if folder else []
    if not found:
        raise RepositoryError(
            "no Ivy jar in the installed pyspark", hint="set HEARTWHEEL_MAVEN_REPO to a Maven repository"
        )
    return found[-1]


def _maven_settings() -> Path:
    return Path(os.environ.get("MAVEN_SETTINGS") or Path.home() / ".m2" / "settings.xml")


def _mirror_of_central(settings: Path) -> str | None:
    if not settings.is_file():
        return None
    try:
        elements = list(ET.parse(settings).iter())  # noqa: S314 - the user's own settings file
    except ET.ParseError as error:
        raise RepositoryError(f"{settings} is not readable as XML: {error}") from None
    for mirror in (element for element in elements if _local_name(element) == "mirror"):
        fields = {_local_name(child): (child.text or "").strip() for child in mirror}
        mirrored = {part.strip() for part in fields.get("mirrorOf", "").split(",")}
        if fields.get("url") and mirrored & {"*", "central", "external:*"} and "!central" not in mirrored:
            return fields["url"]
    return None


def _local_name(element: ET.Element) -> str:
    return element.tag.rpartition("}")[2]


def _ivy_default() -> str:
    with zipfile.ZipFile(ivy_jar()) as jar:
        resolver = jar.read("org/apache/ivy/plugins/resolver/IBiblioResolver.class")
    found = re.search(rb"https://[!-~]+?/maven2/", resolver)
    if not found:
        raise RepositoryError("Ivy names no default repository", hint="set HEARTWHEEL_MAVEN_REPO to a Maven repository")
    return found[0].decode()


def shown_address(address: str) -> str:
    """Return an address to show: without the part before its `@`, which may be a password."""
    return re.sub(r"^((?:[^/?#@]*://)?)[^/?#]*@", r"\1********@", address)


def _parts(address: str) -> urllib.parse.SplitResult:
    try:
        parts = urllib.parse.urlsplit(address)
        _ = parts.port
    except ValueError:
        raise RepositoryError("the address of the repository is none: look at its host and port") from None
    if parts.scheme not in _SCHEMES:
        raise RepositoryError("the address of the repository must begin with https://, http:// or file://")
    if parts.scheme != "https" and "@" in parts.netloc:
        where = f"the repository {parts.hostname}"
        raise RepositoryError(f"{where} would get a password without TLS: its address must begin with https://")
    return parts


def _check_redirect(location: str) -> None:
    """Raise an error for a redirect without TLS, to a file of this machine, or with a password."""
    parts = urllib.parse.urlsplit(location)
    if parts.scheme != "https" or "@" in parts.netloc:
        raise RepositoryError(f"it redirects to {parts.scheme or 'nowhere'}:, and only https: is followed")


class _Redirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *arguments: Any) -> urllib.request.Request | None:
        _check_redirect(arguments[-1])
        return super().redirect_request(*arguments)


class Repository:
    """One Maven repository, read with one kept-alive connection a thread.

    A connection a file would mean a name look-up a file, and one lost answer of a resolver costs 5 s.

    Args:
        address: from `repository_address`, or any other; `user:password@` in it is sent as basic authentication, over
            TLS alone.

    Raises:
        RepositoryError: the address is none, or would send a password that anybody on the way can read.
    """

    def __init__(self, address: str) -> None:
        self.address = address.rstrip("/") + "/"
        self._parts = _parts(self.address)
        self._tls = ssl.create_default_context()  # honours SSL_CERT_FILE and SSL_CERT_DIR
        self._opener = urllib.request.build_opener(urllib.request.HTTPSHandler(context=self._tls), _Redirects())
        self._local = threading.local()
        self._lock = threading.Lock()
        self._opened: list[http.client.HTTPSConnection] = []

    @contextlib.contextmanager
    def open(self, path: str) -> Iterator[IO[bytes]]:
        """Open one file for reading.

        Args:
            path: its path below the repository's address.

        Raises:
            RepositoryError: with the cause in one line.
            RepositoryTroubleError: the same, where trying again may help.
        """
        try:
            with self._request(path) as response:
                yield response
        except urllib.error.HTTPError as error:
            raise RepositoryError(f"HTTP {error.code}") from None
        except ValueError:  # of urllib.parse, about where a redirect leads
            raise RepositoryError("it redirects to what is no address") from None
        except (http.client.HTTPException, OSError) as error:
            self._forget()
            cause = error.reason if isinstance(error, urllib.error.URLError) else error
            if self._parts.scheme == "file":
                raise RepositoryError("no such file") from None
            words = str(cause) or type(cause).__name__
            raise RepositoryTroubleError(words.replace(self._parts.netloc, shown_address(self._parts.netloc))) from None

    def close(self) -> None:
        """Close the connections of all threads."""
        with self._lock:
            for connection in self._opened:
                connection.close()
            self._opened.clear()

    def _request(self, path: str) -> IO[bytes]:
        url = urllib.parse.urljoin(self.address, path)
        if self._parts.scheme != "https":
            return cast("IO[bytes]", self._opener.open(url, timeout=_TIMEOUT_S))
        connection = self._connection()
        target = urllib.parse.urlsplit(url).path
        connection.request("GET", target, headers={"User-Agent": "heartwheel"} | self._authorization())
        response = connection.getresponse()
        if response.status == http.HTTPStatus.OK:
            return response
        response.read()
        if response.status in _REDIRECTS:
            location = urllib.parse.urljoin(url, response.headers.get("Location", ""))
            _check_redirect(location)
            return cast("IO[bytes]", self._opener.open(location, timeout=_TIMEOUT_S))
        if response.status >= http.HTTPStatus.INTERNAL_SERVER_ERROR:
            raise RepositoryTroubleError(f"HTTP {response.status}")
        raise RepositoryError(f"HTTP {response.status}")

    def _connection(self) -> http.client.HTTPSConnection:
        connection: http.client.HTTPSConnection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = self._local.connection = self._connect()
            with self._lock:
                self._opened.append(connection)
        return connection

    def _connect(self) -> http.client.HTTPSConnection:
        host, port = self._parts.hostname or "", self._parts.port
        proxy = None if urllib.request.proxy_bypass(host) else urllib.request.getproxies().get("https")
        if not proxy:
            return http.client.HTTPSConnection(host, port, timeout=_TIMEOUT_S, context=self._tls)
        via = urllib.parse.urlsplit(proxy)
        connection = http.client.HTTPSConnection(via.hostname or "", via.port, timeout=_TIMEOUT_S, context=self._tls)
        connection.set_tunnel(host, port or 443)
        return connection

    def _forget(self) -> None:
        connection = getattr(self._local, "connection", None)
        if connection is not None:
            connection.close()
            self._local.connection = None

    def _authorization(self) -> dict[str, str]:
        if not self._parts.username:
            return {}
        user, password = (urllib.parse.unquote(part or "") for part in (self._parts.username, self._parts.password))
        return {"Authorization": "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()}
