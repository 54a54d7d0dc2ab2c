"""Whether listed names find themselves: searches the names of all lists and counts those that do not.

python bench self_search --data ./vettance-data
python bench self_search --data ./vettance-data --names 5000
"""

import argparse
import json
from pathlib import Path

import msgspec

from bench.matching.screening import newest_index
from vettance.watchlists.index import Index
from vettance.watchlists.self_check import check_names


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="a data folder with imported lists")
    parser.add_argument("--names", type=int, default=10**9, help="so many of them, evenly spread")
    options = parser.parse_args()
    found = check_names(Index(newest_index(options.data)), options.names)
    print(json.dumps(msgspec.to_builtins(found), ensure_ascii=False, indent=2))
