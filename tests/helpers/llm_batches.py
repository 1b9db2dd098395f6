"""The test server's files and batches, as OpenAI's Batch API has them."""

import json
from email import message_from_bytes

LINE_MODES = {"expired": "batch_expired", "cancelled": "batch_cancelled"}


class BatchStore:
    """What was uploaded and made.

    Attributes:
        polls: looks at a batch before it ends.
        ends: status -> of the first batches, in order; later ones complete. "expired" answers every second request.
        files: content by id.
        made: batches by id, in the order they were made.
        before_making: called with the batch's body before it is made; may raise, or return an answer in its place.
        after_making: the same afterwards.
    """

    def __init__(self, server):
        self.server = server
        self.polls = 1
        self.ends = iter(())
        self.files = {}
        self.made = {}
        self.looks = {}
        self.before_making = self.after_making = lambda body: None

    def upload(self, kind, content):
        """A multipart form with the file, and its purpose."""
        form = message_from_bytes(f"Content-Type: {kind}\r\n\r\n".encode() + content)
        parts = {part.get_param("name", header="content-disposition"): part for part in form.get_payload()}
        assert parts["purpose"].get_payload() == "batch"
        number = f"file-{len(self.files)}"
        self.files[number] = parts["file"].get_payload(decode=True)
        return 200, {}, {"id": number, "object": "file", "purpose": "batch"}

    def make(self, body):
        refusal = self.before_making(body)
        if refusal is not None:
            return refusal
        number = f"batch_{len(self.made)}"
        self.made[number] = {**body, "id": number, "object": "batch", "status": "in_progress"}
        self.looks[number] = 0
        return self.after_making(body) or (200, {}, self.made[number])

    def get(self, path):
        path, _, _ = path.partition("?")
        parts = path.split("/")[2:]
        if parts == ["batches"]:
            return 200, {}, {"object": "list", "data": list(self.made.values())[::-1], "has_more": False}
        if parts[0] == "batches" and parts[1] in self.made:
            return 200, {}, self.look(parts[1])
        if parts[0] == "files" and parts[1] in self.files:
            return 200, {}, self.files[parts[1]]
        return 404, {}, {"error": {"message": f"No such thing: {path}"}}

    def look(self, number):
        batch = self.made[number]
        self.looks[number] += 1
        if self.looks[number] > self.polls and batch["status"] == "in_progress":
            batch["status"] = next(self.ends, "completed")
            if batch["status"] == "failed":
                batch["errors"] = {"data": [{"code": "model_not_found", "message": "no such model", "line": 1}]}
            else:
                self.end(batch)
        return batch

    def end(self, batch):
        requests = [json.loads(line) for line in self.files[batch["input_file_id"]].decode().splitlines()]
        assert len({request["custom_id"] for request in requests}) == len(requests)
        code = LINE_MODES.get(batch["status"])
        output, errors = [], []
        for place, request in enumerate(requests):
            assert request["url"] == batch["endpoint"] == "/v1/chat/completions"
            if code is not None and place % 2:
                why = {"code": code, "message": "This request could not be executed before the window expired."}
                errors.append({"custom_id": request["custom_id"], "response": None, "error": why})
                continue
            status, _, body = self.server.complete(request["body"], {})
            if status == 200:
                self.server.answered[request["body"]["messages"][-1]["content"]] += 1
            line = {"custom_id": request["custom_id"], "response": {"status_code": status, "body": body}, "error": None}
            (output if status == 200 else errors).append(line)
        # The order of a batch's output is not that of its input.
        for name, lines in (("output_file_id", output[::-1]), ("error_file_id", errors)):
            if lines:
                batch[name] = f"file-{len(self.files)}"
                self.files[batch[name]] = "".join(json.dumps(line) + "\n" for line in lines).encode()
