"""An object store with one bucket that speaks as much of S3 as PyArrow asks for, and counts what it is asked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from xml.sax.saxutils import escape

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from heartwheel.readers.http_server.server import HttpServer

BUCKET = "state"


class ObjectStore:
    """The store, as an ASGI application.

    Attributes:
        endpoint: where it listens.
        objects: content by key, without the bucket.
        asked: how many requests there were of each method.
        refuses: whether every request is answered with 403.
    """

    def __init__(self) -> None:
        self.endpoint = ""
        self.objects: dict[str, bytes] = {}
        self.asked: Counter[str] = Counter()
        self.refuses = False

    def variables(self) -> dict[str, str]:
        """Return the environment that leads a client here."""
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ACCESS_KEY_ID": "key",
            "AWS_SECRET_ACCESS_KEY": "secret",
            "AWS_REGION": "eu-central-1",
        }

    def files(self, prefix: str = "") -> list[str]:
        """List the keys of objects that stand for no folder."""
        return sorted(key for key in self.objects if key.startswith(prefix) and not key.endswith("/"))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "http":
            request = Request(scope, receive)
            await self._answer(request, await request.body())(scope, receive, send)
            return
        while (await receive())["type"] != "lifespan.shutdown":
            await send({"type": "lifespan.startup.complete"})
        await send({"type": "lifespan.shutdown.complete"})

    def _answer(self, request: Request, body: bytes) -> Response:
        self.asked[request.method] += 1
        if self.refuses:
            return Response(status_code=403)
        key = request.url.path.removeprefix(f"/{BUCKET}").removeprefix("/")
        if request.method == "PUT":
            framed = "aws-chunked" in request.headers.get("content-encoding", "")
            self.objects[key] = _without_chunks(body) if framed else body
            return Response(headers={"etag": '"0"'})
        if request.method == "DELETE":
            self.objects.pop(key, None)
            return Response(status_code=204)
        if "list-type" in request.query_params:
            return self._list(request.query_params["prefix"])
        return self._content(key, request.headers.get("range", ""))

    def _content(self, key: str, part: str) -> Response:
        if key not in self.objects and key:  # no key: whether there is such a bucket
            return Response(status_code=404)
        content, headers = self.objects.get(key, b""), {"x-amz-bucket-region": "eu-central-1"}
        if not part:
            return Response(content, headers=headers)
        first, last = map(int, part.removeprefix("bytes=").split("-"))
        return Response(content[first : last + 1], 206, headers)

    def _list(self, prefix: str) -> Response:
        """Answer ListObjectsV2 of one folder."""
        rows = [
            f"<Contents><Key>{escape(key)}</Key><Size>{len(content)}</Size></Contents>"
            for key, content in sorted(self.objects.items())
            if key.startswith(prefix) and "/" not in key.removeprefix(prefix)
        ]
        head = f"<Prefix>{escape(prefix)}</Prefix><IsTruncated>false</IsTruncated><KeyCount>{len(rows)}</KeyCount>"
        return Response(f"<ListBucketResult>{head}{''.join(rows)}</ListBucketResult>", media_type="application/xml")


def _without_chunks(framed: bytes) -> bytes:
    """Return the content of a body in chunks, each behind its size in hexadecimal digits."""
    content = b""
    while framed:
        head, _, framed = framed.partition(b"\r\n")
        size = int(head.partition(b";")[0], 16)
        if not size:
            break
        content, framed = content + framed[:size], framed[size + 2 :]
    return content


@contextmanager
def object_store() -> Iterator[ObjectStore]:
    """Run an object store for the length of a `with` block."""
    store = ObjectStore()
    with HttpServer(store, host="127.0.0.1", port=0, what="object store") as server:
        store.endpoint = server.url.rstrip("/")
        yield store
