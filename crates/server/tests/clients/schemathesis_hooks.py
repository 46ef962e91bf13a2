"""Lines of JSON, which schemathesis does not know: a batch is sent as such."""

import json

import schemathesis


@schemathesis.serializer("application/x-ndjson", "application/jsonl")
def lines(context, value):
    # The answer to a batch without lines has no line that could be compared with the schema: an empty list is a line.
    values = value if isinstance(value, list) and value else [value]
    return b"".join(json.dumps(value).encode() + b"\n" for value in values)


@schemathesis.deserializer("application/x-ndjson")
def first_line(context, response):
    return json.loads(response.content.splitlines()[0]) if response.content else None
