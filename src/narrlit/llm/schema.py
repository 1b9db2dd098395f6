"""Whether a value fits a JSON schema, for the few keywords that requests use: https://json-schema.org/draft/2020-12."""

from collections.abc import Mapping
from typing import Any

KNOWN = {
    "type",
    "required",
    "properties",
    "additionalProperties",
    "items",
    "enum",
    "minItems",
    "maxItems",
    "minLength",
    "description",
}


def misfit(value: object, schema: Mapping[str, Any], place: str = "the object") -> str | None:
    """Where and why a value does not fit; None where it fits.

    Args:
        value: decoded JSON.
        schema: of objects, arrays and strings.
        place: the value's name, for the answer.

    Raises:
        ValueError: if the schema has keywords or types beside those that are checked.

    >>> misfit({"closer": "C"}, {"type": "object", "properties": {"closer": {"type": "string", "enum": ["A", "B"]}}})
    "closer is none of 'A', 'B'"
    """
    unknown = sorted(set(schema) - KNOWN)
    if unknown:
        raise ValueError(
            f"the schema's keyword {unknown[0]!r} is not checked here; there are {', '.join(sorted(KNOWN))}"
        )
    kind = schema.get("type")
    if kind not in ("object", "array", "string"):
        raise ValueError(f"the schema's type {kind!r} is not checked here; there are object, array and string")
    if "enum" in schema and value not in schema["enum"]:
        return f"{place} is none of {', '.join(map(repr, schema['enum']))}"
    if kind == "object":
        return _object_misfit(value, schema, place)
    return _array_misfit(value, schema, place) if kind == "array" else _string_misfit(value, schema, place)


def _object_misfit(value: object, schema: Mapping[str, Any], place: str) -> str | None:
    if not isinstance(value, dict):
        return f"{place} is no object"
    properties = schema.get("properties", {})
    for name in schema.get("required", ()):
        if name not in value:
            return f"{name} is missing"
    for name, entry in value.items():
        if name in properties:
            fault = misfit(entry, properties[name], name)
            if fault is not None:
                return fault
        elif schema.get("additionalProperties") is False:
            return f"{place} has a key that was not asked for"
    return None


def _array_misfit(value: object, schema: Mapping[str, Any], place: str) -> str | None:
    if not isinstance(value, list):
        return f"{place} is no list"
    least, most = schema.get("minItems", 0), schema.get("maxItems")
    if len(value) < least:
        return f"{place} has fewer than {least} entries"
    if most is not None and len(value) > most:
        return f"{place} has more than {most} entries"
    faults = (misfit(entry, schema["items"], f"an entry of {place}") for entry in value if "items" in schema)
    return next(filter(None, faults), None)


def _string_misfit(value: object, schema: Mapping[str, Any], place: str) -> str | None:
    if not isinstance(value, str):
        return f"{place} is no text"
    if len(value.strip()) < schema.get("minLength", 0):
        return f"{place} is too short"
    if any("\ud800" <= character <= "\udfff" for character in value):
        return f"{place} has half a surrogate pair"  # a broken escape: no file takes it
    return None
