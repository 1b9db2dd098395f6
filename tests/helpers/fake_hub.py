"""Server of a model hub on loopback, as far as uploads by huggingface_hub need it."""

import base64
import json
import re
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import yaml

TOKEN = "hf_secretSECRETsecret"


@dataclass
class Repository:
    """A model on the hub.

    Attributes:
        private: only its owner sees it.
        files: content of each file, by its path.
        messages: of the commits, in order.
    """

    private: bool
    files: dict[str, bytes] = field(default_factory=dict)
    messages: list[str] = field(default_factory=list)


class FakeHub:
    """What the handler's threads share, and what a test sets.

    Attributes:
        url: address of the server.
        repositories: models by OWNER/NAME.
        refusal: status and message with which every request is answered; None: none.
        requests: method, path and Authorization header of each request.
        objects: contents that came as large files, by their digest.
    """

    def __init__(self):
        self.url = ""
        self.repositories: dict[str, Repository] = {}
        self.refusal = None
        self.requests = []
        self.objects: dict[str, bytes] = {}

    def answer(self, path, body):
        """Status and content of the answer to a request."""
        if self.refusal is not None:
            status, message = self.refusal
            return status, {"error": message}
        routes = {
            "/api/repos/create": self.create,
            "/api/validate-yaml": self.validate,
            r"/api/models/(\w+/\w+)": self.describe,
            r"/api/models/\w+/\w+/preupload/main": self.upload_modes,
            r"/\w+/\w+\.git/info/lfs/objects/batch": self.upload_actions,
            "/storage/([0-9a-f]{64})": self.store,
            r"/api/models/(\w+/\w+)/commit/main": self.commit,
        }
        for pattern, route in routes.items():
            if match := re.fullmatch(pattern, path):
                return route(*match.groups(), body)
        return 404, {"error": f"{path} is unknown"}

    def create(self, body):
        """Create a repository; 409 if it exists."""
        fields = json.loads(body)
        name = f"{fields['organization']}/{fields['name']}"
        exists = name in self.repositories
        self.repositories.setdefault(name, Repository(private=fields.get("visibility") == "private"))
        return 409 if exists else 200, {"url": f"{self.url}/{name}"}

    def validate(self, body):
        """Parse the metadata of a card."""
        metadata = yaml.safe_load(json.loads(body)["content"].split("---\n")[1])
        is_valid = isinstance(metadata, dict) and metadata.get("library_name") == "sentence-transformers"
        return (200, {"errors": [], "warnings": []}) if is_valid else (400, {"errors": [{"message": "no metadata"}]})

    def describe(self, name, body):
        """Describe a repository."""
        return 200, {"id": name, "private": self.repositories[name].private, "sha": "0" * 40}

    def upload_modes(self, body):
        """Weights come as large files, the others in the commit."""
        modes = []
        for file in json.loads(body)["files"]:
            mode = "lfs" if file["path"].endswith(".safetensors") else "regular"
            modes.append({"path": file["path"], "uploadMode": mode, "shouldIgnore": False, "oid": None})
        return 200, {"files": modes}

    def upload_actions(self, body):
        """Where large files are to be sent."""
        objects = []
        for described in json.loads(body)["objects"]:
            upload = {"href": f"{self.url}/storage/{described['oid']}"}
            objects.append({**described, "actions": {"upload": upload}})
        return 200, {"transfer": "basic", "objects": objects}

    def store(self, digest, body):
        """Store a large file."""
        self.objects[digest] = body
        return 200, {}

    def commit(self, name, body):
        """Store the files of a commit."""
        repository = self.repositories[name]
        for line in map(json.loads, body.splitlines()):
            value = line["value"]
            if line["key"] == "header":
                repository.messages.append(value["summary"])
            elif line["key"] == "lfsFile":
                content = self.objects[value["oid"]]
                assert (sha256(content).hexdigest(), len(content)) == (value["oid"], value["size"])
                repository.files[value["path"]] = content
            else:
                repository.files[value["path"]] = base64.b64decode(value["content"])
        return 200, {"commitUrl": f"{self.url}/{name}/commit/1", "commitOid": "1" * 40}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        path = self.path.partition("?")[0]
        self.server.hub.requests.append((self.command, path, self.headers.get("Authorization")))
        status, content = self.server.hub.answer(path, self.read_body())
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_PUT = do_POST

    def read_body(self):
        """Read a body with a length, or in chunks."""
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        body = b""
        while size := int(self.rfile.readline(), 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def log_message(self, *arguments):
        """Print nothing."""


@contextmanager
def fake_hub():
    """Run a hub during the block."""
    hub = FakeHub()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.hub = hub
    hub.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
