"""The files that the settings name: checked before the server listens, with all errors reported at once."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from typing import NamedTuple

from heartwheel.readers.dashboard.login.login import Login
from heartwheel.readers.dashboard.login.users import UsersFileError
from heartwheel.readers.http_server.tls import tls_context
from heartwheel.settings import SettingProblem, Settings, SettingsError


class Files(NamedTuple):
    """The content of the files: the login, and the context for TLS, `None` without it."""

    login: Login
    tls: ssl.SSLContext | None


def read_files(settings: Settings, now_ms: Callable[[], int]) -> Files:
    """Read the files that the section `[dashboard]` names.

    Raises:
        SettingsError: some cannot be used; no secret is in the message.
    """
    wanted, problems = settings.dashboard, list[SettingProblem]()
    login, tls = None, None
    try:
        login = Login(wanted, now_ms)
    except UsersFileError as error:
        problems.append(
            SettingProblem("dashboard.users_file", str(error), f'"{wanted.users_file}"', hint=error.hint or "")
        )
    if wanted.tls_certificate:
        try:
            tls = tls_context(wanted.tls_certificate, wanted.tls_key)
        except OSError as error:
            why = (error.strerror if not isinstance(error, ssl.SSLError) else error.reason) or str(error)
            message = f"cannot be used with its key: {why}"
            hint = "name two PEM files that this user may read: the certificate, and its key, unencrypted"
            problems.append(
                SettingProblem("dashboard.tls_certificate", message, f'"{wanted.tls_certificate}"', hint=hint)
            )
    if problems or login is None:
        raise SettingsError(problems)
    return Files(login, tls)
