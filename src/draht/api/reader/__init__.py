"""Two readers for two kinds of writers.

People's files are read strictly: `read_files` and `read_text` report every unknown field, duplicate, wrong type and
missing field at once, each with file, line, column and field path, and return the good objects beside the problems.
Servers' answers are read leniently: `read_object` and `read_list` ignore what is new and lose no object because of
another. Neither judges what an object *means*; that is validation.

Errors: problems of people's texts are values (`Problem`), never raised. `ServerError` (a `DrahtError`) is raised for an
answer that can't be used at all.
"""

from __future__ import annotations

from draht.api.reader.document import Foreign, Located
from draht.api.reader.files import STDIN, ReadResult, read_files, read_text
from draht.api.reader.lenient import ServerError, ServerList, read_list, read_object
from draht.api.reader.problem import Code, Problem

__all__ = [
    "STDIN",
    "Code",
    "Foreign",
    "Located",
    "Problem",
    "ReadResult",
    "ServerError",
    "ServerList",
    "read_files",
    "read_list",
    "read_object",
    "read_text",
]
