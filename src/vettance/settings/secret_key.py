"""The secret of a deployment: from the settings, or from a file in the data folder that is made once."""

import os
import secrets
from pathlib import Path

from vettance.settings.settings import (
    SECRET_BYTES,
    Environment,
    Settings,
    SettingsError,
    open_data_folder,
)

SECRET_FILE = "secret.key"  # noqa: S105  The name of a file.


def load_secret(settings: Settings) -> bytes:
    """Return the secret of this deployment: the setting, else the file in the data folder, made once.

    Raises `SettingsError` in production without the setting, and for a damaged file.
    """
    check_secret(settings)
    if settings.secret is not None:
        return settings.secret
    path = open_data_folder(settings) / SECRET_FILE
    try:
        _make_secret_file(path)
    except OSError as error:
        raise SettingsError(f"{path} cannot be made: {error.strerror}") from None
    return _read_secret_file(path)


def check_secret(settings: Settings) -> None:
    """Refuse what `load_secret` would refuse, and make nothing. Raises `SettingsError`."""
    if settings.secret is None and settings.environment is Environment.PRODUCTION:
        raise SettingsError("VETTANCE_SECRET must be set in production (64 hexadecimal digits)")
    known_secret(settings)


def known_secret(settings: Settings) -> bytes | None:
    """Return the secret of this deployment, or None when it has none yet. Raises `SettingsError`."""
    if settings.secret is not None:
        return settings.secret
    try:
        return _read_secret_file(settings.data / SECRET_FILE)
    except (FileNotFoundError, NotADirectoryError):
        return None


def _read_secret_file(path: Path) -> bytes:
    try:
        secret = bytes.fromhex(path.read_text("ascii").strip())
    except (FileNotFoundError, NotADirectoryError):
        raise
    except OSError as error:
        raise SettingsError(f"{path} cannot be read: {error.strerror}") from None
    except ValueError:
        raise SettingsError(f"{path} cannot be read as a secret") from None
    if len(secret) != SECRET_BYTES:
        raise SettingsError(f"{path} does not hold 64 hexadecimal digits")
    return secret


def _make_secret_file(path: Path) -> None:
    """Make the secret file whole or not at all, so that two processes starting at once agree on one."""
    if path.exists():
        return
    draft = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w") as file:
        file.write(secrets.token_bytes(SECRET_BYTES).hex() + "\n")
        file.flush()
        os.fsync(file.fileno())
    try:
        os.link(draft, path)
    except FileExistsError:
        pass
    finally:
        draft.unlink()
