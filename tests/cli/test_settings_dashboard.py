"""The settings of who may look: what does not fit is refused before anything listens, and no secret is shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from heartwheel.base.addresses import is_loopback
from heartwheel.front.cli.app import run
from heartwheel.settings import SettingsError, load_settings
from support.certificates import Authority
from support.login import write_users

TOKEN = "a-token-of-some-length"  # noqa: S105 - of these tests alone
FOR_OTHERS = "dashboard.host=0.0.0.0"


def problems_of(*overrides: str, env: dict[str, str] | None = None) -> dict[str, str]:
    """Load a wrong configuration, and give what is said of each path."""
    with pytest.raises(SettingsError) as caught:
        load_settings(None, env or {}, overrides)
    return {problem.path: f"{problem.message} {problem.hint}" for problem in caught.value.problems}


def test_listening_for_others_needs_a_login(capsys: pytest.CaptureFixture[str]) -> None:
    """An address that others reach is refused with exit code 2 and a hint, unless there is a login or --insecure."""
    assert run(["dashboard", "--host", "0.0.0.0", "--bootstrap-servers", "127.0.0.1:1"]) == 2  # noqa: S104
    said = capsys.readouterr().err
    assert ("dashboard.host" in said, "dashboard.users_file" in said, "--insecure" in said) == (True, True, True)
    for host in ("::", "192.0.2.1", "dash.example.org", "127.evil.example"):
        assert set(problems_of(f"dashboard.host={host}")) == {"dashboard.host"}
    for enough in ("dashboard.insecure=true", "dashboard.users_file=users", "dashboard.user_header=X-User"):
        load_settings(None, {}, [FOR_OTHERS, enough, "dashboard.trusted_proxies=10.0.0.1"])
    load_settings(None, {"HEARTWHEEL_DASHBOARD__TOKEN": TOKEN}, [FOR_OTHERS])


@pytest.mark.parametrize(
    ("host", "local"),
    [
        *((host, True) for host in ("127.0.0.1", "127.9.9.9", "localhost", "LOCALHOST", "::1", "[::1]")),
        *(
            (host, False)
            for host in ("0.0.0.0", "::", "[::]", "10.0.0.1", "127.0.0.1.evil.example", "localhost.evil", "")  # noqa: S104
        ),
    ],
)
def test_what_is_local(host: str, local: bool) -> None:  # noqa: FBT001 - a column of the table
    """Addresses of the loopback network and `localhost` are reached from this machine alone, nothing that looks so."""
    assert is_loopback(host) is local


@pytest.mark.parametrize(
    ("override", "path", "words"),
    [
        ("dashboard.user_header=X-User", "dashboard.user_header", "dashboard.trusted_proxies"),
        ("dashboard.user_header=X User", "dashboard.user_header", "name of a header"),
        ("dashboard.trusted_proxies=10.0.0.0/8,proxy", "dashboard.trusted_proxies", "addresses or networks"),
        ("dashboard.trusted_proxies=10.0.0.1/8", "dashboard.trusted_proxies", "host bits"),
        ("dashboard.tls_certificate=a.pem", "dashboard.tls_certificate", "dashboard.tls_key"),
        ("dashboard.tls_key=a.pem", "dashboard.tls_key", "dashboard.tls_certificate"),
        ("dashboard.base_path=heartwheel", "dashboard.base_path", "begin with a slash"),
        ("dashboard.base_path=/heartwheel/", "dashboard.base_path", "not end with one"),
        ("dashboard.base_path=//evil.example", "dashboard.base_path", "begin with a slash"),
        ("dashboard.base_path=/a/..", "dashboard.base_path", "begin with a slash"),
        ('dashboard.base_path=/a"b', "dashboard.base_path", "begin with a slash"),
        ("dashboard.allow_hosts=a b", "dashboard.allow_hosts", "commas"),
        ("dashboard.session_ttl=1s", "dashboard.session_ttl", "at least 1m"),
        ("dashboard.connections_max=1", "dashboard.connections_max", "at least 8"),
    ],
)
def test_what_does_not_fit_is_refused_by_path(override: str, path: str, words: str) -> None:
    """Each wrong value is reported with its path, and what would be right."""
    found = problems_of(override)
    assert set(found) == {path}
    assert words in found[path]


def test_secrets_are_long_enough_and_shown_nowhere(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Token and session secret come from files or the environment, are refused in flags and when short, and masked."""
    for path in ("dashboard.token", "metrics.token", "dashboard.session_secret"):
        assert "secret" in problems_of(f"{path}={TOKEN}-{TOKEN}")[path]
        variable = "HEARTWHEEL_" + path.upper().replace(".", "__")
        with pytest.raises(SettingsError) as caught:
            load_settings(None, {variable: "hunter2"}, ())
        assert ("hunter2" in str(caught.value), path in str(caught.value)) == (False, True)
        (tmp_path / "secret").write_text(f"{TOKEN}-{TOKEN}\n", encoding="utf-8")
        loaded = load_settings(None, {variable: f"file:{tmp_path / 'secret'}"}, ())
        assert TOKEN not in repr(loaded.settings)
        file = tmp_path / "conf.toml"
        section, _, key = path.partition(".")
        file.write_text(f'[{section}]\n{key} = "{TOKEN}-{TOKEN}"\n', encoding="utf-8")
        assert run(["config", "--config", str(file)]) == 0
        said = capsys.readouterr()
        assert TOKEN not in said.out + said.err


def test_files_that_can_not_be_used_are_all_told_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file of users and a certificate that are wrong: exit code 2, both with path and hint, no line of them shown."""
    users = tmp_path / "users"
    users.write_text("alice:hunter2\n", encoding="utf-8")
    key, _, _ = Authority(tmp_path, "one").issue("a")
    _, certificate, _ = Authority(tmp_path, "two").issue("b")
    flags = {"users_file": users, "tls_certificate": certificate, "tls_key": key}
    sets = [word for name, file in flags.items() for word in ("--set", f"dashboard.{name}={file}")]
    assert run(["dashboard", "--port", "0", "--bootstrap-servers", "127.0.0.1:1", *sets]) == 2
    said = capsys.readouterr().err
    assert ("2 problems" in said, "line 1" in said, "hunter2" in said) == (True, True, False)
    assert ("dashboard.users_file" in said, "dashboard.tls_certificate" in said) == (True, True)
    write_users(users, alice="x")
    sets[sets.index(f"dashboard.tls_key={key}")] = f"dashboard.tls_key={tmp_path / 'nowhere'}"
    assert run(["dashboard", "--port", "0", "--bootstrap-servers", "127.0.0.1:1", *sets]) == 2
    said = capsys.readouterr().err
    assert ("1 problem" in said, "No such file" in said) == (True, True)
