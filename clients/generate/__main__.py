"""Starts the service, takes its OpenAPI document, and writes the generated files of both clients."""

import argparse
import subprocess
import sys
from pathlib import Path

from clients.generate.document import CLIENTS, document_of_the_service, packed, read_document, write_document
from clients.generate.endpoints import endpoints_of, name_new_endpoints
from clients.generate.python_files import write_python
from clients.generate.typescript_files import write_typescript


def main() -> int:
    """Write all generated files, into another folder than the clients' where one is named."""
    parser = argparse.ArgumentParser(prog="make clients", description=__doc__)
    parser.add_argument("--from", dest="source", type=Path, help="a document instead of the service's own")
    parser.add_argument("--into", type=Path, default=CLIENTS, help="a folder instead of clients/")
    parser.add_argument("--only", choices=["python", "typescript"], help="one client instead of both")
    options = parser.parse_args()
    document = read_document(options.source) if options.source else document_of_the_service()
    if options.into == CLIENTS:
        write_document(document, CLIENTS / "openapi.json")
        name_new_endpoints(document)
    endpoints = endpoints_of(document)
    if options.only != "typescript":
        write_python(document, endpoints, options.into / "python" / "src" / "vettance_client")
        (options.into / "python" / "src" / "vettance_client" / "openapi.json").write_bytes(packed(document))
    if options.only != "python":
        write_typescript(endpoints, options.source or CLIENTS / "openapi.json", options.into / "typescript")
    print(f"{len(endpoints)} endpoints are in both clients.")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except subprocess.CalledProcessError as error:
        sys.exit(f"{error.cmd[0]} failed:\n{error.stderr or error.stdout or ''}")
