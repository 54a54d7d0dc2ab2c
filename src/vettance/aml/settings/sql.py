"""Statements that change the settings of AML, each by itself: two may change different ones at once."""

from collections.abc import Mapping
from typing import Final

import msgspec

from vettance.aml.case import OfficerSettings
from vettance.aml.screening.screening_alert import ScreeningSettings
from vettance.db.engine import Statement, insert
from vettance.db.tables import AML_SCREENING_SETTING, AML_SETTING, Insert
from vettance.watchlists.subject_screening import Profile

_OFFICERS: Final = "tenant, four_eyes, inline_screening"
_SAVE_OFFICERS: Final = Insert(AML_SETTING, _OFFICERS, key="tenant", replaces="four_eyes, inline_screening")
_SAVE_FOUR_EYES: Final = Insert(AML_SETTING, _OFFICERS, key="tenant", replaces="four_eyes")
_SAVE_INLINE_SCREENING: Final = Insert(AML_SETTING, _OFFICERS, key="tenant", replaces="inline_screening")
_SCREENING: Final = "tenant, profile, bounds"
_SAVE_PROFILE: Final = Insert(AML_SCREENING_SETTING, _SCREENING, key="tenant", replaces="profile")
_SAVE_BOUNDS: Final = Insert(AML_SCREENING_SETTING, _SCREENING, key="tenant", replaces="bounds")


def save_officers(tenant: str, settings: OfficerSettings) -> Statement:
    """Store how a tenant's officers work."""
    return insert(_SAVE_OFFICERS, tenant, (int(settings.four_eyes), int(settings.inline_screening)))


def save_four_eyes(tenant: str, *, is_on: bool) -> Statement:
    """Store whether closing a case needs two officers."""
    return insert(_SAVE_FOUR_EYES, tenant, (int(is_on), int(OfficerSettings().inline_screening)))


def save_inline_screening(tenant: str, *, is_on: bool) -> Statement:
    """Store whether names in events are compared with the watchlists."""
    return insert(_SAVE_INLINE_SCREENING, tenant, (int(OfficerSettings().four_eyes), int(is_on)))


def save_profile(tenant: str, profile: Profile) -> Statement:
    """Store how requests that name no profile are screened."""
    return insert(_SAVE_PROFILE, tenant, (profile.value, _written(ScreeningSettings().bounds)))


def save_bounds(tenant: str, bounds: Mapping[Profile, int]) -> Statement:
    """Store the least score that is reviewed, by profile."""
    return insert(_SAVE_BOUNDS, tenant, (ScreeningSettings().profile.value, _written(bounds)))


def _written(bounds: Mapping[Profile, int]) -> str:
    return msgspec.json.encode(bounds).decode()
