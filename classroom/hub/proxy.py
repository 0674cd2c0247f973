"""The hub's own proxy: it passes requests and websockets on to the hub and to the students' servers.

JupyterHub's usual proxy is a program for Node.js. This one runs inside the hub, so one machine needs nothing
but Python. It answers a request only once all of it has arrived, which is enough for JupyterLab.
"""

from urllib.parse import unquote, urlsplit

from jupyterhub.proxy import Proxy
from tornado.httpclient import HTTPClientError, HTTPRequest
from tornado.httpserver import HTTPServer
from tornado.httputil import HTTPHeaders
from tornado.simple_httpclient import SimpleAsyncHTTPClient
from tornado.web import Application
from tornado.websocket import WebSocketClosedError, WebSocketHandler, websocket_connect

LARGEST = 200_000_000  # bytes of a request, an answer, or a message
OF_ONE_CONNECTION = (
    "Connection",
    "Keep-Alive",
    "Transfer-Encoding",
    "Content-Length",
    "Upgrade",
    "Sec-Websocket-Key",
    "Sec-Websocket-Version",
    "Sec-Websocket-Extensions",
    "Sec-Websocket-Protocol",
)


def passed_on(headers: HTTPHeaders) -> HTTPHeaders:
    """The headers without those that hold for one connection only."""
    kept = HTTPHeaders()
    for name, value in headers.get_all():
        if name.title() not in OF_ONE_CONNECTION:
            kept.add(name, value)
    return kept


class InnerProxy(Proxy):
    """Routes in a dictionary, and a web server in the hub's event loop."""

    def __init__(self, **settings):
        super().__init__(**settings)
        self.routes = {}
        # Unlike Tornado's defaults: more than ten requests at once, and no limit on how long they take.
        self.client = SimpleAsyncHTTPClient(
            force_instance=True,
            max_clients=10_000,
            max_body_size=LARGEST,
            max_buffer_size=LARGEST,
            defaults={"request_timeout": 0},
        )

    async def start(self):
        application = Application([(r".*", Passage, {"proxy": self})], websocket_max_message_size=LARGEST)
        self.server = HTTPServer(application, max_body_size=LARGEST, max_buffer_size=LARGEST)
        public = urlsplit(self.public_url)
        self.server.listen(public.port, public.hostname)

    async def stop(self):
        self.server.stop()

    async def add_route(self, routespec, target, data):
        self.routes[unquote(self.validate_routespec(routespec))] = {
            "routespec": routespec,
            "target": target,
            "data": data,
        }

    async def delete_route(self, routespec):
        self.routes.pop(unquote(self.validate_routespec(routespec)), None)

    async def get_all_routes(self):
        return {route["routespec"]: route for route in self.routes.values()}

    def address(self, request) -> str:
        """Where a request goes: the longest route that its path begins with. LookupError where none does."""
        path = unquote(request.path) + "/"
        longest = max((route for route in self.routes if path.startswith(route)), key=len, default=None)
        if longest is None:
            raise LookupError(path)
        return self.routes[longest]["target"].rstrip("/") + request.uri


class Passage(WebSocketHandler):
    """One request of a browser, or one websocket. ``far`` is the connection to the other side."""

    def initialize(self, proxy):
        self.proxy, self.far, self.early, self.is_open = proxy, None, [], False

    async def get(self):
        socket = self.request.headers.get("Upgrade", "").lower() == "websocket"
        await (self.connect() if socket else self.pass_on())

    async def pass_on(self):
        request = self.request
        try:
            answer = await self.proxy.client.fetch(
                HTTPRequest(
                    self.proxy.address(request),
                    request.method,
                    passed_on(request.headers),
                    request.body or None,
                    allow_nonstandard_methods=True,
                    follow_redirects=False,
                    decompress_response=False,
                ),
                raise_error=False,
            )
        except (OSError, LookupError, HTTPClientError):
            self.send_error(503)
            return
        self.clear()
        self.set_status(answer.code, answer.reason)
        for name, value in passed_on(answer.headers).get_all():
            (self.set_header if name in ("Server", "Date", "Content-Type") else self.add_header)(name, value)
        if "Content-Type" not in answer.headers:
            self.clear_header("Content-Type")
        await self.finish(answer.body or None)

    head = post = put = patch = delete = options = pass_on

    def compute_etag(self):
        """None: setting one is up to whoever answers."""

    # ---- websockets ----
    async def connect(self):
        """Connect to the other side first: it decides whether there will be a websocket, and its protocol."""
        offered = self.request.headers.get("Sec-WebSocket-Protocol", "")
        try:
            address = "ws" + self.proxy.address(self.request).removeprefix("http")
            self.far = await websocket_connect(
                HTTPRequest(address, headers=passed_on(self.request.headers)),
                on_message_callback=self.told,
                subprotocols=[name.strip() for name in offered.split(",")] if offered else None,
                max_message_size=LARGEST,
            )
        except (OSError, LookupError, HTTPClientError) as problem:
            self.send_error(getattr(problem, "code", 503))
            return
        await super().get()

    def select_subprotocol(self, offered):
        return self.far.selected_subprotocol

    def open(self):
        self.is_open = True
        self.set_nodelay(True)
        for message in self.early:
            self.told(message)

    def told(self, message):
        """The other side says something, or hangs up (None)."""
        if not self.is_open:
            self.early.append(message)
        elif message is None:
            self.close()
        else:
            try:
                self.write_message(message, binary=isinstance(message, bytes))
            except WebSocketClosedError:
                self.far.close()

    def on_message(self, message):
        self.far.write_message(message, binary=isinstance(message, bytes))

    def on_close(self):
        self.far.close()
