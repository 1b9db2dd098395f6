"""Bodies of requests, as clients in many languages send them."""

from typing import Any

from pydantic import BaseModel, field_validator, model_validator
from pydantic_core import PydanticCustomError


class RequestBody(BaseModel):
    """Body of a request; null stands for the default of a field."""

    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, value: Any) -> Any:
        """Leave out fields with null that have a default: many clients send all fields they know."""
        if not isinstance(value, dict):
            return value
        required = {name for name, field in cls.model_fields.items() if field.is_required()}
        return {name: content for name, content in value.items() if content is not None or name in required}

    @field_validator("*", mode="before")
    @classmethod
    def _require_unicode(cls, value: Any) -> Any:
        """Refuse halves of characters, which a client sends that cuts a text inside of an emoji."""
        if isinstance(value, list):
            list(map(cls._require_unicode, value))
        elif isinstance(value, dict):
            list(map(cls._require_unicode, value.values()))
        elif isinstance(value, str) and any("\ud800" <= character <= "\udfff" for character in value):
            raise PydanticCustomError("not_unicode", "a text has half of a character; send whole ones")
        return value
