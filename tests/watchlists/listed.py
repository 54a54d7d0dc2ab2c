"""Entities that do not exist, for tests of matching and searching."""

from vettance.watchlists.birth_dates import read_birth
from vettance.watchlists.entity import Document, DocumentKind, Entity, EntityDraft, EntityType, NameQuality


def entity(
    name: str,
    number: int = 1,
    kind: EntityType = EntityType.INDIVIDUAL,
    *,
    aliases: tuple[str, ...] = (),
    weak: tuple[str, ...] = (),
    births: tuple[str, ...] = (),
    countries: tuple[str, ...] = (),
    documents: tuple[tuple[DocumentKind, str, str], ...] = (),
    source: str = "csv",
) -> Entity:
    draft = EntityDraft(f"{source}:{number}", source, kind)
    draft.add_name(name, NameQuality.PRIMARY)
    for text in aliases:
        draft.add_name(text)
    for text in weak:
        draft.add_name(text, NameQuality.WEAK)
    for text in births:
        draft.add_birth(read_birth(text))
    draft.add("countries", *countries)
    for document in documents:
        draft.add_document(*document)
    return draft.freeze()


def document(kind: DocumentKind, value: str, country: str = "") -> Document:
    return Document(kind, value, country)
