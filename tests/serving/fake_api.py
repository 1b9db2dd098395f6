"""Small stand-in for the server of `narrlit serve`: the 24 tales, compared by their words, without a model.

python tests/serving/fake_api.py 8123
"""

import io
import json
import sys
import threading
import time
from collections import Counter
from contextlib import contextmanager
from email.parser import BytesParser
from email.policy import HTTP
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

import numpy as np
import pandas as pd
from scipy.cluster.hierarchy import leaves_list, linkage
from scipy.spatial.distance import squareform
from sklearn.feature_extraction.text import TfidfVectorizer

import narrlit

PACKAGE = Path(narrlit.__file__).parent
PAGE = PACKAGE / "serving" / "page"
TYPES = {
    ".html": "text/html",
    ".js": "text/javascript",
    ".css": "text/css",
    ".json": "application/json",
    ".svg": "image/svg+xml",
}
CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
EXTENSIONS = [".txt", ".docx", ".pdf", ".csv", ".xlsx", ".jsonl", ".zip"]


def passages_of(text):
    """Passages of about 25 words as {text, start, end}."""
    found, start = [], 0
    for sentence in text.replace(". ", ".\n").split("\n"):
        end = start + len(sentence)
        if found and len(found[-1]["text"].split()) < 20:
            found[-1] = {"text": text[found[-1]["start"] : end], "start": found[-1]["start"], "end": end}
        else:
            found.append({"text": sentence, "start": start, "end": end})
        start = end + 1
    return found


class Tales:
    """The tales as a collection."""

    def __init__(self, stories):
        self.stories = stories
        self.ids = [story["id"] for story in stories]
        texts = [story["text"] for story in stories]
        self.words = TfidfVectorizer(stop_words="english", sublinear_tf=True).fit(texts)
        self.vectors = self.words.transform(texts).toarray()
        self.similarities = self.vectors @ self.vectors.T - 0.05

    def about(self, name):
        columns = []
        for column in self.stories[0]["metadata"]:
            counts = Counter(story["metadata"][column] for story in self.stories if story["metadata"][column])
            values = [{"value": value, "count": count} for value, count in counts.most_common(50)]
            columns.append({"name": column, "kind": "text", "values": values, "distinct": len(counts)})
        return {
            "name": name,
            "stories": len(self.stories),
            "model": "narrlit-mini",
            "measure": "passages",
            "columns": columns,
            "import": None,
        }

    def story(self, id):
        return self.stories[self.ids.index(id)]

    def nearest(self, similarities, leave_out=None):
        order = [place for place in np.argsort(-similarities) if self.ids[place] != leave_out]
        return [(self.stories[place], float(similarities[place])) for place in order]

    def explain(self, left, right):
        one, other = (passages_of(text) for text in (left, right))
        cosines = self.words.transform([p["text"] for p in one]) @ self.words.transform([p["text"] for p in other]).T
        cosines = cosines.toarray() + 0.01
        links = {(i, int(row.argmax())) for i, row in enumerate(cosines)} | {
            (int(row.argmax()), j) for j, row in enumerate(cosines.T)
        }
        total = len(one) + len(other)
        rows = [
            {"left": i, "right": j, "similarity": float(cosines[i, j]), "share": float(cosines[i, j]) / total}
            for i, j in sorted(links)
        ]
        return one, other, rows

    def map(self):
        distances = squareform(0.5 - (self.similarities + self.similarities.T) / 2, checks=False)
        tree = linkage(distances, "average", optimal_ordering=True)
        order = leaves_list(tree).tolist()
        places = np.linalg.svd(self.vectors - self.vectors.mean(0))[0][:, :2]
        types = sorted({story["metadata"]["atu"] for story in self.stories if story["metadata"]["atu"]})
        points = []
        for story, (x, y) in zip(self.stories, places.tolist(), strict=True):
            atu = story["metadata"]["atu"]
            group = types.index(atu) if atu else -1
            points.append(
                {
                    "id": story["id"],
                    "title": story["title"],
                    "x": x,
                    "y": y,
                    "group": group,
                    "metadata": story["metadata"],
                }
            )
        groups = [{"number": i, "label": f"words of {name}", "count": 3} for i, name in enumerate(types)]
        matrix = self.similarities[np.ix_(order, order)].round(3).tolist()
        merges = [[int(a), int(b), float(height), int(count)] for a, b, height, count in tree]
        return {
            "points": points,
            "groups": groups,
            "tree": {"merges": merges, "order": [self.ids[i] for i in order]},
            "similarities": matrix,
        }


def read_tales():
    frame = pd.read_csv(PACKAGE / "tales" / "tales.csv", dtype=str)
    stories = []
    for row in frame.to_dict("records"):
        metadata = {"country": row["country"], "atu": row["atu"]}
        stories.append(
            {
                "id": Path(row["file_name"]).stem,
                "title": row["title"],
                "text": row["text"],
                "words": len(row["text"].split()),
                "metadata": metadata,
            }
        )
    return stories


class State:
    """What the server holds in memory."""

    def __init__(self):
        tales = read_tales()
        for story in tales[2::6]:
            story["metadata"]["atu"] = ""
        self.collections = {"tales": Tales(tales)}
        self.imports = {}
        self.decisions = {}
        self.catalog = {}
        self.maps = Counter()
        self.speed = 2000
        """Words that an import embeds a second."""

    def progress(self, each):
        if each["status"] != "embedding":
            return each
        now = time.monotonic()
        each["done"]["words"] = min(each["words"], each["done"]["words"] + int(self.speed * (now - each["since"])))
        each["since"] = now
        each["done"]["stories"] = int(each["stories"] * each["done"]["words"] / each["words"])
        each["seconds_left"] = (each["words"] - each["done"]["words"]) / self.speed
        if each["done"]["words"] == each["words"]:
            each["status"] = "done"
            self.collections[each["collection"]] = Tales(each["texts"])
        return each


def reading(name, content, chosen=None):
    """One file of an import, and its stories; `chosen` columns of a table, or those with usual names."""
    text = content.decode("utf-8", "replace")
    if name.endswith(".csv"):
        frame = pd.read_csv(io.StringIO(text), dtype=str).fillna("")
        columns = list(frame.columns)
        chosen = chosen or {role: role if role in columns else None for role in ("text", "title", "id")}
        stories = rows_of(frame, chosen) if chosen["text"] else []
        warnings = [] if chosen["text"] else ["no column is named text: choose the one that holds the stories"]
    else:
        columns, chosen, warnings = [], {"text": None, "title": None, "id": None}, []
        id = Path(name).stem
        stories = [{"id": id, "title": id.title(), "text": text, "words": len(text.split()), "metadata": {}}]
    preview = [
        {"id": s["id"], "title": s["title"], "words": s["words"], "beginning": s["text"][:120]} for s in stories[:5]
    ]
    about = {
        "name": name,
        "kind": name.rpartition(".")[2],
        "stories": len(stories),
        "words": sum(s["words"] for s in stories),
        "language": "en",
        "columns": columns,
        "chosen": chosen,
        "warnings": warnings,
        "preview": preview,
        "skipped": False,
    }
    return about, stories


def rows_of(frame, chosen):
    """Stories of a table."""
    stories = []
    for number, row in enumerate(frame.to_dict("records")):
        text, title, id = (row[chosen[role]] if chosen[role] else "" for role in ("text", "title", "id"))
        metadata = {name: value for name, value in row.items() if name not in chosen.values()}
        words = len(text.split())
        stories.append({"id": id or str(number), "title": title, "text": text, "words": words, "metadata": metadata})
    return stories


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    state: State

    def log_message(self, *_):
        pass

    def answer(self, value, status=200, headers=()):
        self.send(json.dumps(value).encode(), "application/json", status, headers)

    def send(self, body, kind, status=200, headers=()):
        self.send_response(status)
        for name, value in (
            ("Content-Type", kind),
            ("Content-Length", str(len(body))),
            ("Content-Security-Policy", CSP),
            *headers,
        ):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def fail(self, message, status=404):
        self.answer(
            {"error": {"message": message, "parameter": None, "type": "invalid_request_error", "code": None}}, status
        )

    def handle_request(self):
        address = urlsplit(self.path)
        self.query = parse_qs(address.query)
        parts = [unquote(part) for part in address.path.split("/") if part]
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        is_json = (self.headers.get("Content-Type") or "").startswith("application/json")
        self.body = json.loads(body) if is_json else body
        try:
            if not parts or parts[0] == "page":
                file = PAGE / ("/".join(parts[1:]) or "index.html")
                self.send(file.read_bytes(), TYPES[file.suffix])
            elif parts == ["settings"]:
                limits = {"upload_bytes": 50_000_000, "stories": 100_000}
                self.answer(
                    {
                        "version": narrlit.__version__,
                        "model": "narrlit-mini",
                        "writable": True,
                        "extensions": EXTENSIONS,
                        "limits": limits,
                    }
                )
            elif parts[0] == "imports":
                self.imports(parts[1:])
            elif parts == ["collections"]:
                self.answer([each.about(name) for name, each in self.state.collections.items()])
            elif parts[0] == "collections" and parts[1] in self.state.collections:
                self.collection(parts[1], self.state.collections[parts[1]], parts[2:])
            else:
                self.fail(f"there is no collection {parts[-1]}")
        except (FileNotFoundError, ValueError) as error:
            self.fail(str(error))

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = handle_request

    def imports(self, parts):
        imports = self.state.imports
        if not parts and self.command == "GET":
            return self.answer([self.public(self.state.progress(each)) for each in imports.values()])
        if not parts:
            head = b"Content-Type: " + self.headers["Content-Type"].encode() + b"\r\n\r\n"
            message = BytesParser(policy=HTTP).parsebytes(head + self.body)
            contents = {part.get_filename(): part.get_payload(decode=True) for part in message.iter_parts()}
            id = f"i{len(imports) + 1}"
            done = {"stories": 0, "words": 0}
            imports[id] = {"id": id, "status": "ready", "contents": contents, "columns": {}, "skip": []}
            imports[id] |= {"collection": None, "done": done, "seconds_left": None, "message": None}
            self.understand(imports[id])
            return self.answer(self.public(imports[id]))
        each = self.state.progress(imports[parts[0]])
        if self.command == "PATCH":
            each["skip"] = self.body.get("skip", each["skip"])
            each["columns"] |= self.body.get("columns", {})
            self.understand(each)
        if self.command == "DELETE":
            del imports[parts[0]]
            return self.send(b"", "application/json", 204)
        if parts[1:] == ["start"]:
            each["collection"] = self.body["collection"]
        if parts[1:] in (["start"], ["resume"]):
            each.update(status="embedding", since=time.monotonic())
        if parts[1:] == ["pause"]:
            each["status"] = "paused"
        return self.answer(self.public(each))

    def understand(self, each):
        """Read the files with the columns that were chosen."""
        each["files"], each["texts"] = [], []
        for name, content in each["contents"].items():
            about, stories = reading(name, content, each["columns"].get(name))
            about["skipped"] = name in each["skip"]
            each["files"].append(about)
            if not about["skipped"]:
                each["texts"] += stories
        each["stories"] = len(each["texts"])
        each["words"] = sum(story["words"] for story in each["texts"])

    def public(self, each):
        return {
            key: value for key, value in each.items() if key not in ("texts", "since", "contents", "columns", "skip")
        }

    def collection(self, name, tales, parts):
        if self.command == "DELETE" and not parts:
            del self.state.collections[name]
            return self.send(b"", "application/json", 204)
        if not parts:
            return self.answer(tales.about(name))
        return getattr(self, f"serve_{parts[0]}")(tales, parts[1:])

    def serve_stories(self, tales, parts):
        if parts:
            story = tales.story(parts[0])
            nearest = tales.nearest(tales.similarities[tales.ids.index(parts[0])], parts[0])[:10]
            rows = [
                {"id": s["id"], "title": s["title"], "similarity": value, "snippet": s["text"][:90]}
                for s, value in nearest
            ]
            return self.answer({**story, "nearest": rows})
        found = [s for s in tales.stories if "ids" not in self.query or s["id"] in self.query["ids"][0].split(",")]
        for filter in self.query.get("filter", []):
            column, _, value = filter.partition(":")
            found = [s for s in found if s["metadata"][column] == value]
        offset, limit = (int(self.query.get(key, [default])[0]) for key, default in (("offset", 0), ("limit", 100)))
        rows = [{key: s[key] for key in ("id", "title", "words", "metadata")} for s in found[offset : offset + limit]]
        return self.answer({"total": len(found), "stories": rows})

    def serve_search(self, tales, _):
        like = self.body.get("like")
        text = tales.story(like)["text"] if like else self.body["query"]
        similarities = tales.vectors @ tales.words.transform([text]).toarray()[0] - 0.05
        hits = []
        for story, value in tales.nearest(similarities, like):
            if all(story["metadata"][column] in values for column, values in self.body.get("filters", {}).items()):
                passage = max(
                    passages_of(story["text"]),
                    key=lambda p: len(set(p["text"].lower().split()) & set(text.lower().split())),
                )
                hits.append(
                    {
                        "id": story["id"],
                        "title": story["title"],
                        "similarity": value,
                        "passage": passage,
                        "before": story["text"][: passage["start"]],
                        "after": story["text"][passage["end"] :],
                        "copies": [],
                        "metadata": story["metadata"],
                    }
                )
        if hits and len(hits) > 3:
            hits[0]["copies"] = [{"id": hits[-1]["id"], "title": hits[-1]["title"]}]
        return self.answer({"hits": hits[: self.body["k"]], "measure": "passages", "seconds": 0.021})

    def serve_explain(self, tales, _):
        sides = [self.body[side] for side in ("left", "right")]
        texts = [tales.story(side["id"])["text"] if "id" in side else side["text"] for side in sides]
        titles = [tales.story(side["id"])["title"] if "id" in side else "" for side in sides]
        one, other, links = tales.explain(*texts)
        return self.answer(
            {
                "similarity": sum(link["share"] for link in links) - 0.05,
                "left": {"title": titles[0], "passages": one},
                "right": {"title": titles[1], "passages": other},
                "links": links,
            }
        )

    def serve_map(self, tales, _):
        self.state.maps[id(tales)] += 1
        if self.state.maps[id(tales)] == 1:
            return self.answer({"status": "computing", "done": 0.4}, 202)
        return self.answer(tales.map())

    def serve_export(self, tales, _):
        ids = self.body["ids"] or tales.ids
        content = "id,title\n" + "".join(f"{i},{tales.story(i)['title']}\n" for i in ids)
        return self.send(
            content.encode(),
            "text/csv",
            headers=[("Content-Disposition", f'attachment; filename="stories.{self.body["format"]}"')],
        )

    def serve_pairs(self, tales, parts):
        decisions = self.state.decisions
        if parts == ["decisions"]:
            key = (self.body["reader"], self.body["left"], self.body["right"])
            if self.command == "PUT":
                decisions[key] = self.body["decision"]
            else:
                decisions.pop(key, None)
            return self.answer({})
        if parts == ["table"]:
            rows = "".join(
                f"{left},{right},{decision},{reader}\n" for (reader, left, right), decision in decisions.items()
            )
            headers = [("Content-Disposition", f'attachment; filename="pairs.{self.query["format"][0]}"')]
            return self.send(("left,right,decision,reader\n" + rows).encode(), "text/csv", headers=headers)
        if parts == ["agreement"]:
            readers = sorted({reader for reader, _, _ in decisions})
            known = (
                {"alpha": 0.71, "low": 0.2, "high": 1.0}
                if len(readers) > 1
                else {"alpha": None, "low": None, "high": None}
            )
            return self.answer({"readers": readers, "pairs": 3 if len(readers) > 1 else 0, **known})
        reader = self.query["reader"][0]
        pairs = sorted(
            ((float(tales.similarities[i, j]), i, j) for i in range(len(tales.ids)) for j in range(i)), reverse=True
        )[:12]
        rows = []
        for similarity, i, j in pairs:
            one, other = ({key: tales.stories[place][key] for key in ("id", "title", "text")} for place in (j, i))
            rows.append(
                {
                    "left": one,
                    "right": other,
                    "similarity": similarity,
                    "decision": decisions.get((reader, one["id"], other["id"])),
                }
            )
        decided = sum(row["decision"] is not None for row in rows)
        open_rows = [row for row in rows if row["decision"] is None]
        return self.answer(
            {"pairs": open_rows[: int(self.query["limit"][0])], "decided": decided, "remaining": len(open_rows)}
        )

    def serve_catalog(self, tales, parts):
        if parts == ["decisions"]:
            self.state.catalog[self.body["id"]] = self.body
            return self.answer({})
        column = self.query["column"][0]
        proposals = []
        for place, story in enumerate(tales.stories):
            if story["metadata"][column]:
                continue
            speaking = [
                (s, value)
                for s, value in tales.nearest(tales.similarities[place], story["id"])
                if s["metadata"][column]
            ][:6]
            counts = Counter(s["metadata"][column] for s, _ in speaking)
            values = []
            for value, count in counts.most_common(3):
                stories = [
                    {"id": s["id"], "title": s["title"], "similarity": similarity}
                    for s, similarity in speaking
                    if s["metadata"][column] == value
                ]
                values.append({"value": value, "probability": count / len(speaking), "stories": stories})
            proposals.append({"id": story["id"], "title": story["title"], "values": values})
        accuracy = {"n": 20, "correct": 15, "accuracy": 0.75, "interval": [0.53, 0.89]}
        return self.answer(
            {
                "column": column,
                "accuracy": accuracy,
                "baseline": 0.13,
                "proposals": proposals,
                "decided": len(self.state.catalog),
            }
        )


@contextmanager
def fake_api(port=0):
    """Run the server in a thread; yield its address and its state."""
    state = State()
    server = ThreadingHTTPServer(("127.0.0.1", port), type("Serving", (Handler,), {"state": state}))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", state
    finally:
        server.shutdown()
        server.server_close()


if __name__ == "__main__":
    with fake_api(int(sys.argv[1])) as (address, _):
        print(address)
        threading.Event().wait()
