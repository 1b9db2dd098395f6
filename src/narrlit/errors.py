"""Errors that a user can mend: the command line prints them as one line and exits with 2, without a traceback."""


class NarrlitError(Exception):
    """A mistake outside the program; its message says where it is and what to do next."""


class DataError(NarrlitError):
    """A data file is missing, broken or does not fit; the message names file and line or field."""


class OptionError(NarrlitError):
    """An option has no use as given; the message names the option."""


class ModelError(NarrlitError):
    """A model can't be found, loaded or used in this way."""


class MissingExtraError(NarrlitError):
    """An optional package is absent; the message gives the pip command."""
