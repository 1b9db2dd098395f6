"""Run a command with a server of a language model: `python with_llm_server.py COMMAND...`.

The server is that of the tests (tests/helpers/llm_server.py); its replies fit each request's schema.
"""

import os
import subprocess
import sys

from llm_server import MODEL, llm_server

with llm_server() as server:
    variables = {"OPENAI_BASE_URL": server.url, "NARRLIT_LLM_MODEL": MODEL, "OPENAI_API_KEY": "none"}
    result = subprocess.run(sys.argv[1:], env=os.environ | variables, check=False)
raise SystemExit(result.returncode)
