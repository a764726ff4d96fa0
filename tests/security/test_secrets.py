"""Secrets: where they may stand, how they are read, and what never shows them."""

from __future__ import annotations

import json
import os
import re
import stat
from pathlib import Path

import pytest
from kafka.errors import KafkaConnectionError, KafkaTimeoutError, SaslAuthenticationFailedError

from heartwheel.base.private import private_folder
from heartwheel.engine.runtime.driver.checkpoint_store import open_store
from heartwheel.engine.runtime.driver.job_tally import redacted, secrets_of
from heartwheel.engine.runtime.driver.secret_properties import properties_file, properties_text
from heartwheel.engine.runtime.driver.session import session_conf
from heartwheel.front.cli.app import run
from heartwheel.front.demo.folder import fresh_folder
from heartwheel.kafka.broker.node_security import NodeSecurity, arguments_file
from heartwheel.kafka.client import KafkaRefusedError, plain_errors
from heartwheel.kafka.security import ClientPropertyError, client_settings, java_properties
from heartwheel.kafka.tls_login import TlsError, _with_last_words, refusal_of
from heartwheel.readers.notify.store import Store
from heartwheel.settings import MASK, Settings, SettingsError, is_secret, load_settings
from heartwheel.settings.secret import HIDDEN_NAMES
from support.certificates import Authority

PATH = "kafka.client.sasl.password"


@pytest.mark.parametrize(
    ("path", "words"),
    [
        (PATH, "set HEARTWHEEL_KAFKA__CLIENT__SASL_PASSWORD in the environment"),
        ("spark.conf.spark.ssl.keyPassword", """set HEARTWHEEL_SPARK__CONF in the environment, to {"spark.ssl.keyP"""),
        ("notify.url", "set HEARTWHEEL_NOTIFY__URL in the environment"),
        ("kafka.client.sasl.jaas.config", "set HEARTWHEEL_KAFKA__CLIENT__SASL_JAAS_CONFIG in the environment"),
    ],
)
def test_a_secret_in_a_flag_is_refused(path: str, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A password on a command line, which everybody can read, is refused with where to put it, and not repeated."""
    assert run(["config", "--set", f"{path}=hunter2"]) == 2
    printed = capsys.readouterr().err
    assert "hunter2" not in printed
    assert f"{path} = {MASK}" in printed
    assert words in printed
    assert f"--set {path}=file:PATH" in printed


@pytest.mark.parametrize("layer", ["flag", "environment", "file"])
def test_a_secret_can_lie_in_a_file(layer: str, tmp_path: Path) -> None:
    """Every layer may name a file in place of a secret; the line break at its end does not count."""
    secret = tmp_path / "password"
    secret.write_text(" hunter2\n")
    reference = f"file:{secret}"
    config = tmp_path / "heartwheel.toml"
    config.write_text(f"[kafka.client]\n'sasl.password' = '{reference}'\n" if layer == "file" else "")
    env = {"HEARTWHEEL_KAFKA__CLIENT__SASL_PASSWORD": reference} if layer == "environment" else {}
    flags = [f"{PATH}={reference}"] if layer == "flag" else []
    assert load_settings(config, env, flags).settings.kafka.client["sasl.password"] == " hunter2"


def test_only_secrets_are_read_from_files(tmp_path: Path) -> None:
    """A value that is no secret is never taken for the name of a file, whatever it begins with."""
    file = tmp_path / "name"
    file.write_text("x")
    env = {"HEARTWHEEL_KAFKA__CLIENT__CLIENT_ID": f"file:{file}"}
    assert load_settings(None, env).settings.kafka.client["client.id"] == f"file:{file}"


@pytest.mark.parametrize(("content", "words"), [(None, "No such file"), ("\n", "the file is empty")])
def test_a_file_without_a_secret_is_a_problem(content: str | None, words: str, tmp_path: Path) -> None:
    """A file that is not there, or empty, is reported with its name and its setting, beside all other problems."""
    file = tmp_path / "password"
    if content is not None:
        file.write_text(content)
    with pytest.raises(SettingsError) as caught:
        load_settings(None, {}, [f"{PATH}=file:{file}", "engine.shards=0"])
    problems = {problem.path: problem for problem in caught.value.problems}
    assert problems.keys() == {PATH, "engine.shards"}
    assert words in problems[PATH].message
    assert str(file) in problems[PATH].value


def test_secret_properties_of_spark_travel_in_a_file_of_ours_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """The JVM is pointed to a file that nobody else can read, and that is gone once it has started."""
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "--verbose pyspark-shell")
    with properties_file({"spark.ssl.keyPassword": "hunter2"}):
        words = os.environ["PYSPARK_SUBMIT_ARGS"].split()
        assert "hunter2" not in " ".join(words)
        assert words[0] == "--load-spark-defaults"
        assert words[-2:] == ["--verbose", "pyspark-shell"]
        file = Path(words[words.index("--properties-file") + 1])
        assert file.read_text() == "spark.ssl.keyPassword=hunter2\n"
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert not file.exists()
    assert os.environ["PYSPARK_SUBMIT_ARGS"] == "--verbose pyspark-shell"
    with properties_file({}):
        assert os.environ["PYSPARK_SUBMIT_ARGS"] == "--verbose pyspark-shell"


def test_secret_properties_keep_every_character() -> None:
    """Backslashes, line breaks and a blank at the start reach Java as they are."""
    assert properties_text({"a": " b\\c\nd\t=é"}) == "a=\\ b\\\\c\\nd\\t=é\n"


@pytest.mark.parametrize(
    ("name", "hidden"),
    [
        ("kafka.sasl.jaas.config", True),
        ("kafka.ssl.keystore.key", True),
        ("spark.ssl.keyPassword", True),
        ("spark.hadoop.fs.s3a.access.key", True),
        ("spark.hadoop.fs.azure.account.key.store.blob", True),
        ("spark.hadoop.fs.azure.sas.container.store.blob", True),
        ("spark.hadoop.fs.azure.sas.fixed.token.store.dfs", True),
        ("x.apikey", True),
        ("x.api-key", True),
        ("javax.net.ssl.keyStorePwd", True),
        ("kafka.sasl.mechanism", False),
        ("spark.network.crypto.keyLength", False),
        ("spark.master", False),
        ("kafka.ssl.truststore.location", False),
        ("kafka.client.ssl.key.location", False),
    ],
)
def test_names_of_secrets(name: str, hidden: bool) -> None:  # noqa: FBT001 - a column of the table
    """One rule says what is a secret, for `config`, for errors, and for the pages and plans of Spark."""
    assert is_secret(name) is hidden
    assert bool(re.search(HIDDEN_NAMES, name)) is hidden


OPTIONS = "-Xss4m -Djavax.net.ssl.trustStorePassword=hunter2 -Da.b=c -Dx.password='hunter2 too' -Dx.apikey=hunter2"


def test_secrets_in_options_of_a_jvm_are_masked(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`-D...password=...` within a value is masked by `config`, as table and as JSON, and the rest of it is shown."""
    name = "spark.executor.extraJavaOptions"
    monkeypatch.setenv("HEARTWHEEL_SPARK__CONF", json.dumps({name: OPTIONS}))
    for words in ([], ["--json"]):
        assert run(["config", *words]) == 0
        printed = capsys.readouterr().out
        assert "hunter2" not in printed
        assert (
            f"-Xss4m -Djavax.net.ssl.trustStorePassword={MASK} -Da.b=c -Dx.password={MASK} -Dx.apikey={MASK}" in printed
        )
    settings = load_settings(None, os.environ).settings
    assert redacted(f"java {OPTIONS}", secrets_of(settings)).count("hunter2") == 0
    assert redacted("it was hunter2", secrets_of(settings)) == f"it was {MASK}"


def test_a_secret_in_an_option_of_a_flag_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """A flag whose value has a password in it is as public as one that is a password."""
    assert run(["config", "--set", f"spark.conf.spark.executor.extraJavaOptions={OPTIONS}"]) == 2
    printed = capsys.readouterr().err
    assert "hunter2" not in printed
    assert "has a secret, and a command line can be read" in printed


def test_arguments_of_kafkas_tools_travel_in_a_file_of_ours_alone() -> None:
    """What the broker's users are made of is read from a file with mode 0600 that is gone afterwards."""
    with arguments_file(["--add-scram", 'SCRAM=[name=a,salt="b c"]']) as words:
        (word,) = words
        assert word[0] == "@"
        file = Path(word[1:])
        assert file.read_text() == '--add-scram\nSCRAM=[name=a,salt="b c"]\n'
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert not file.exists()
    with arguments_file([]) as words:
        assert words == []


@pytest.mark.parametrize("make", ["notifier", "checkpoint", "demo", "log"])
def test_folders_are_for_their_owner_alone(make: str, tmp_path: Path) -> None:
    """Folders of the notifier, of checkpoints, of the demo and of logs are made with 0700; others stay as they are."""
    folder = tmp_path / "above" / "folder"

    def use() -> None:
        if make == "notifier":
            with Store(folder).locked():
                pass
        elif make == "checkpoint":
            store = open_store(str(folder), None)
            assert store is not None
            store.write("manifest", b"x")
        elif make == "demo":
            with fresh_folder(folder):
                pass
        else:
            session_conf(Settings(), [], shuffle_partitions=1, log_file=folder / "spark.log")

    before = os.umask(0o022)
    try:
        use()
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        folder.chmod(0o750)
        use()
        assert stat.S_IMODE(folder.stat().st_mode) == 0o750
        assert stat.S_IMODE(folder.parent.stat().st_mode) == 0o755
    finally:
        os.umask(before)


def test_a_file_in_place_of_a_folder_is_an_error(tmp_path: Path) -> None:
    """A file where the folder should be is no folder that is there already."""
    (tmp_path / "file").touch()
    with pytest.raises(FileExistsError):
        private_folder(tmp_path / "file")


def test_the_brokers_command_line_holds_no_password(tmp_path: Path) -> None:
    """The embedded broker learns its users by salted hashes; neither those nor passwords are in a `repr`."""
    security = NodeSecurity(key_and_certificate=tmp_path, trusted=tmp_path, users={"heart": "hunter2"})
    option, printed = security.format_arguments()
    assert option == "--add-scram"
    assert re.fullmatch(r'SCRAM-SHA-512=\[name=heart,salt="[^"]+",iterations=4096,saltedpassword="[^"]+"\]', printed)
    assert "hunter2" not in repr(security) + printed


def test_a_client_certificate_reaches_both_clients(tmp_path: Path) -> None:
    """Key and certificate, in PEM files of their own, are given to kafka-python by name and to Java by content."""
    key, certificate, _ = Authority(tmp_path, "authority").issue("client")
    properties = {"ssl.certificate.location": str(certificate), "ssl.key.location": str(key)}
    assert client_settings(properties) == {"ssl_certfile": str(certificate), "ssl_keyfile": str(key)}
    assert java_properties(properties) == {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.certificate.chain": certificate.read_text(),
        "ssl.keystore.key": key.read_text(),
    }
    with pytest.raises(ClientPropertyError, match=r"goes together with ssl\.key\.location"):
        java_properties({"ssl.certificate.location": str(certificate)})
    with pytest.raises(ClientPropertyError, match=r"ssl\.key\.location: cannot read .*: No such file"):
        java_properties(properties | {"ssl.key.location": str(tmp_path / "none")})


@pytest.mark.parametrize(
    ("error", "final"),
    [
        (SaslAuthenticationFailedError("no"), True),
        (KafkaConnectionError("Handshake failed: [SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed"), True),
        (FileNotFoundError(2, "No such file or directory"), True),
        (KafkaConnectionError("Handshake failed: [SSL: UNEXPECTED_EOF_WHILE_READING] EOF occurred"), False),
        (KafkaConnectionError("Handshake failed: [Errno 104] Connection reset by peer"), False),
        (KafkaConnectionError("socket disconnected"), False),
        (KafkaTimeoutError(), False),
    ],
)
def test_only_what_can_not_get_better_is_final(error: Exception, final: bool) -> None:  # noqa: FBT001 - a column
    """A login or a certificate is judged once; a broker that goes down in the middle of a handshake is asked again."""
    assert (refusal_of(error) is not None) is final


def test_last_words_are_heard() -> None:
    """What a broker says just before it closes is read first, the end of the connection afterwards."""
    end = KafkaConnectionError("socket disconnected")
    reads = iter([(b"Authentication failed", end), (b"", end)])
    receive = _with_last_words(lambda: next(reads))
    assert receive() == (b"Authentication failed", None)
    assert receive() == (b"", end)


def test_a_refusal_reads_like_one() -> None:
    """The error names the broker and OpenSSL's own words, and the settings to look at."""
    refusal = refusal_of(KafkaConnectionError("Handshake failed: [SSL: CERTIFICATE_VERIFY_FAILED] self-signed"))
    assert isinstance(refusal, TlsError)
    with pytest.raises(KafkaRefusedError) as caught, plain_errors("kafka:9093", "list topics"):
        raise refusal
    assert (
        str(caught.value)
        == "no trusted connection to Kafka at kafka:9093: [SSL: CERTIFICATE_VERIFY_FAILED] self-signed"
    )
    assert "ssl.ca.location" in str(caught.value.hint)
