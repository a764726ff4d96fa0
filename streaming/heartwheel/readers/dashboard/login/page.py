"""The login page and the logout button; they need no script."""

from __future__ import annotations

from html import escape


def login_page(base: str, wanted: str, *, name: str = "", error: str = "") -> str:
    """Return the login page.

    Args:
        wanted: where to go after the login, a path of this dashboard.
        name: the name of a failed attempt.
        error: why that attempt failed.
    """
    words = f'<p class="login-error" role="alert">{escape(error)}</p>' if error else ""
    styles = "".join(
        f'<link rel="stylesheet" href="{base}/page/css/{file}.css">' for file in ("tokens", "base", "parts", "login")
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Log in · heartwheel</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta name="color-scheme" content="light dark"><link rel="icon" href="{base}/page/icon.svg">{styles}'
        f'<script src="{base}/page/js/theme.js"></script></head><body class="login"><main>'
        f'<h1><img src="{base}/page/icon.svg" alt="" width="28" height="28"> heartwheel</h1>{words}'
        f'<form method="post" action="{base}/login"><input type="hidden" name="next" value="{escape(wanted)}">'
        f'<label>Name <input name="user" value="{escape(name)}" autocomplete="username" required maxlength="255"'
        f"{' autofocus' if not name else ''}></label>"
        '<label>Password <input name="password" type="password" autocomplete="current-password" required '
        f'maxlength="1024"{" autofocus" if name else ""}></label>'
        '<button class="button" type="submit">Log in</button></form></main></body></html>'
    )


def account(base: str, name: str, *, may_leave: bool) -> str:
    """Return the name of the user, for the head of each page, and a logout button where that makes sense."""
    button = (
        f'<form method="post" action="{base}/logout"><button class="button quiet" type="submit">Log out</button></form>'
    )
    return f'<span class="account" title="Logged in as {escape(name)}">{escape(name)}</span>{button * may_leave}'
