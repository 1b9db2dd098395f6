"""Checks of requests before any route: host, origin, token, size and number; headers of every answer."""

import asyncio
import hashlib
import hmac
import socket
import time
from collections.abc import Mapping
from http.cookies import CookieError, SimpleCookie
from ipaddress import ip_address
from urllib.parse import parse_qs, parse_qsl, urlencode, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from narrlit.serving.metrics import ServerMetrics
from narrlit.serving.problems import RefusedError, answer, overloaded, refusal_of_fault, refusal_of_http
from narrlit.serving.settings import LOOPBACK_NAMES, ServerSettings

CONTENT_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "font-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
SECURITY_HEADERS = {
    "Content-Security-Policy": CONTENT_POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
}
COOKIE = "narrlit_token"
OPEN_PATHS = ("/health",)
"""Paths that need no token and are answered however many requests there are: those that watch a server call them."""
UPLOAD_PATHS = ("/imports",)
PAGE_PATHS = ("/page/",)


class SecurityHeaders:
    """Add the headers that tell a browser what the page may do; answers of the API are not stored."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(SECURITY_HEADERS)
                headers.setdefault("Cache-Control", "no-cache" if _is_page(scope["path"]) else "no-store")
            await send(message)

        await self.app(scope, receive, send_with_headers)


class MeasuredRequests:
    """Count requests, and measure the time to answer them."""

    def __init__(self, app: ASGIApp, metrics: ServerMetrics) -> None:
        self.app, self.metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        status = 500
        began = time.perf_counter()

        async def send_noting_status(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self.app(scope, receive, send_noting_status)
        finally:
            route = getattr(scope.get("route"), "path", "other")
            self.metrics.requests.labels(scope["method"], route, status).inc()
            self.metrics.seconds.labels(route).observe(time.perf_counter() - began)


class LimitedRequests:
    """Refuse requests beyond the number that is answered at the same time."""

    def __init__(self, app: ASGIApp, limit: int) -> None:
        self.app, self.limit, self.active = app, limit, 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http" or scope["path"] in OPEN_PATHS:
            await self.app(scope, receive, send)
            return
        if self.active >= self.limit:
            refusal = overloaded(f"more than {self.limit:,} requests at once: repeat the request later")
            await answer(refusal)(scope, receive, send)
            return
        self.active += 1
        try:
            await self.app(scope, receive, send)
        finally:
            self.active -= 1


class CheckedHost:
    """Refuse requests for another host, which a page of a stranger sends after DNS rebinding."""

    def __init__(self, app: ASGIApp, settings: ServerSettings) -> None:
        self.app = app
        self.names = allowed_names(settings)
        self.allows_addresses = not settings.is_loopback

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http" or self._is_allowed(Headers(scope=scope).get("host", "")):
            await self.app(scope, receive, send)
            return
        message = "this server does not answer for the host of the request: open the address that it printed"
        await answer(RefusedError(421, message, "Host", code="foreign_host"))(scope, receive, send)

    def _is_allowed(self, host: str) -> bool:
        name = host_name(host)
        return name in self.names or (self.allows_addresses and _is_address(name))


class CheckedOrigin:
    """Refuse requests that a page of another origin sends (CSRF)."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http" or self._is_allowed(Headers(scope=scope), scope["method"]):
            await self.app(scope, receive, send)
            return
        message = "a page of another origin sent this request: only the server's own page may"
        await answer(RefusedError(403, message, "Origin", code="foreign_origin"))(scope, receive, send)

    @staticmethod
    def _is_allowed(headers: Headers, method: str) -> bool:
        origin = headers.get("origin")
        if origin is not None:
            return urlsplit(origin).netloc.lower() == headers.get("host", "").lower()
        site, mode = headers.get("sec-fetch-site"), headers.get("sec-fetch-mode")
        is_link = mode == "navigate" and method == "GET"
        return site in (None, "same-origin", "none") or is_link


class RequiredToken:
    """Require the token: in the header Authorization, in a cookie, or once as `?token=`, which sets the cookie."""

    def __init__(self, app: ASGIApp, token: str | None) -> None:
        self.app, self.token = app, token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http" or self.token is None or scope["path"] in OPEN_PATHS:
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        query = scope["query_string"].decode("latin-1")
        tokens = parse_qs(query).get("token")
        if tokens and self._matches(tokens[0]) and scope["method"] == "GET":
            await self._with_cookie(scope["path"], query)(scope, receive, send)
        elif self._is_authorized(headers):
            await self.app(scope, receive, send)
        else:
            await answer(self._refusal())(scope, receive, send)

    def _matches(self, text: str) -> bool:
        return hmac.compare_digest(text.encode(), str(self.token).encode())

    def _is_authorized(self, headers: Headers) -> bool:
        scheme, _, credentials = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and self._matches(credentials.strip()):
            return True
        cookie = _cookies(headers).get(COOKIE, "")
        return hmac.compare_digest(cookie.encode(), self._cookie_value.encode())

    @property
    def _cookie_value(self) -> str:
        """Digest of the token, so that the cookie does not contain it."""
        return hashlib.sha256(f"narrlit cookie {self.token}".encode()).hexdigest()

    def _with_cookie(self, path: str, query: str) -> Response:
        """Set the cookie, and redirect to the address without the token."""
        others = [(name, value) for name, value in parse_qsl(query) if name != "token"]
        rest = urlencode(others)
        location = "/" + path.lstrip("/\\")  # never another host
        response = RedirectResponse(f"{location}?{rest}" if rest else location, 303)
        response.set_cookie(COOKIE, self._cookie_value, httponly=True, samesite="strict", path="/")
        return response

    @staticmethod
    def _refusal() -> RefusedError:
        message = (
            "the token is missing or wrong: send it as `Authorization: Bearer TOKEN`, or open the address with "
            "?token=TOKEN that the server printed"
        )
        headers = {"WWW-Authenticate": "Bearer"}
        return RefusedError(401, message, "token", code="invalid_token", headers=headers)


class LimitedBody:
    """Refuse a body that is larger than its limit, by its header or while it arrives, or that arrives too slowly."""

    def __init__(self, app: ASGIApp, settings: ServerSettings) -> None:
        self.app, self.limits = app, settings.limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        is_upload = scope["method"] == "POST" and scope["path"] in UPLOAD_PATHS
        limit = self.limits.upload_bytes if is_upload else self.limits.body_bytes
        too_large = HTTPException(
            413, f"the body is larger than {limit:,} bytes: send less at once", {"Connection": "close"}
        )
        declared = Headers(scope=scope).get("content-length", "0")
        if declared.isdecimal() and int(declared) > limit:
            await answer(refusal_of_http(too_large))(scope, receive, send)
            return
        received = 0
        is_complete = False

        async def receive_limited() -> Message:
            nonlocal received, is_complete
            try:
                async with asyncio.timeout(None if is_complete else self.limits.body_seconds):
                    part = await receive()
            except TimeoutError:
                raise HTTPException(408, "the body did not arrive in time: send it again") from None
            received += len(part.get("body", b""))
            is_complete = not part.get("more_body", False)
            if received > limit:
                raise too_large
            return part

        await self.app(scope, receive_limited, send)


class AnsweredFaults:
    """Answer requests that meet an unforeseen error, inside the other checks, so that these add their headers."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        is_answered = False

        async def send_noting_start(message: Message) -> None:
            nonlocal is_answered
            is_answered = True
            await send(message)

        try:
            await self.app(scope, receive, send_noting_start)
        except Exception as error:
            if scope["type"] != "http" or is_answered:
                raise
            await answer(refusal_of_fault(error))(scope, receive, send)


def allowed_names(settings: ServerSettings) -> frozenset[str]:
    """Return the names under which a server answers."""
    if settings.is_loopback:
        return LOOPBACK_NAMES | {settings.host.strip("[]").lower()}
    host = settings.host.strip("[]")
    names = [host, socket.gethostname(), socket.getfqdn(), *map(str.strip, settings.names)]
    return LOOPBACK_NAMES.union(map(str.lower, names))


def host_name(host: str) -> str:
    """Return the name in a header Host, without the port.

    >>> host_name("localhost:8000"), host_name("[::1]:8000"), host_name("evil.example@localhost")
    ('localhost', '::1', '')
    """
    if any(sign in host for sign in "@/\\?# "):
        return ""
    try:
        return (urlsplit(f"//{host}").hostname or "").lower()
    except ValueError:
        return ""


def _is_address(name: str) -> bool:
    """Return True for the number of an address, which no rebinding can point elsewhere."""
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


def _cookies(headers: Headers) -> Mapping[str, str]:
    try:
        parsed = SimpleCookie(headers.get("cookie", ""))
    except CookieError:
        return {}
    return {name: morsel.value for name, morsel in parsed.items()}


def _is_page(path: str) -> bool:
    return path == "/" or path.startswith(PAGE_PATHS)
