"""The table of sources: what `vettance watchlist import --source NAME` takes, and where it comes from."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec

from vettance.watchlists.entity import Entity
from vettance.watchlists.sources import bis, csl, dfat, eu, ofac, opensanctions, own, uk, un

Reader = Callable[[str, Sequence[Path]], Iterator[Entity]]

#: The list that one tenant imports for itself (`--source csv --tenant ID`), seen by nobody else.
OWN = "own"

_OFAC = "https://sanctionslistservice.ofac.treas.gov/api/PublicationPreview/exports/"


class ListSource(msgspec.Struct, frozen=True):
    """A list that can be imported: `code` is its name on the wire, `urls` where its publisher offers it."""

    name: str
    code: str
    title: str
    read: Reader
    urls: tuple[str, ...] = ()


_ROWS = (
    ListSource(
        "us_ofac_sdn",
        "OFAC SDN",
        "US Treasury, Specially Designated Nationals",
        ofac.read,
        tuple(_OFAC + name for name in ("SDN.CSV", "ALT.CSV", "ADD.CSV", "SDN_COMMENTS.CSV")),
    ),
    ListSource(
        "us_ofac_cons",
        "OFAC CONS",
        "US Treasury, Consolidated (non-SDN)",
        ofac.read,
        tuple(
            _OFAC + name for name in ("CONS_PRIM.CSV", "CONS_ALT.CSV", "CONS_ADD.CSV", "CONS_COMMENTS.CSV")
        ),
    ),
    ListSource(
        "un_sc",
        "UN SC",
        "United Nations Security Council",
        un.read,
        ("https://scsanctions.un.org/resources/xml/en/consolidated.xml",),
    ),
    ListSource(
        "eu_fsf",
        "EU FSF",
        "European Union, Financial Sanctions Files",
        eu.read,
        (
            "https://webgate.ec.europa.eu/fsd/fsf/public/files/xmlFullSanctionsList_1_1/content?token=dG9rZW4tMjAxNw",
        ),
    ),
    ListSource(
        "uk_ofsi",
        "UK OFSI",
        "United Kingdom, financial sanctions targets",
        uk.read,
        ("https://sanctionslist.fcdo.gov.uk/docs/UK-Sanctions-List.csv",),
    ),
    ListSource(
        "au_dfat",
        "AU DFAT",
        "Australia, Consolidated List",
        dfat.read,
        ("https://www.dfat.gov.au/sites/default/files/regulation8_consolidated.xlsx",),
    ),
    ListSource(
        "us_csl",
        "US CSL",
        "US Consolidated Screening List",
        csl.read,
        ("https://data.trade.gov/downloadable_consolidated_screening_list/v1/consolidated.csv",),
    ),
    ListSource(
        "us_bis_dpl",
        "US BIS DPL",
        "US Commerce, Denied Persons List",
        bis.read,
        ("https://www.bis.gov/dpl/dpl.txt",),
    ),
    ListSource(
        "opensanctions",
        "OPENSANCTIONS",
        "OpenSanctions, simplified CSV",
        opensanctions.read_simple,
        ("https://data.opensanctions.org/datasets/latest/default/targets.simple.csv",),
    ),
    ListSource("ftm", "FTM", "FollowTheMoney JSON lines", opensanctions.read_ftm),
    ListSource("csv", "OWN LIST", "A list of your own", own.read),
    ListSource(OWN, "OWN LIST", "A tenant's own list", own.read),
    ListSource("sample", "SAMPLE", "The sample that comes with Vettance; not a real list", own.read),
)

#: Name → source, in the order in which they are shown.
SOURCES = {source.name: source for source in _ROWS}
