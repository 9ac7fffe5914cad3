"""Alerts from the whole application to receivers that take them in a form of their own."""

import email.policy
import os
import shutil
import socketserver
import subprocess
import sysconfig
import threading
import time
from email.message import EmailMessage

import pytest
from standardwebhooks.webhooks import Webhook

from tests.http.test_delivery import PERIOD_SECONDS, Customer, delivering
from tests.receiver import Receiver, answer
from tests.support import FakeClock, wait_until

HOOKS = {
    "Mattermost": "/secret/hooks/" + "a1" * 13,
    "Gotify": "/message?token=A-secret.token",
    "Telegram": "/bot123456:A-secret-token/sendMessage?chat_id=-1",
    "Microsoft Teams": "/workflows/6a/triggers/manual/paths/invoke?sig=A-secret-token",
    "Apprise API": "/notify/A-secret-token",
}


@pytest.fixture
def customer(config):
    customer = Customer(delivering(config, FakeClock(time.time() - PERIOD_SECONDS - 1)))
    yield customer
    customer.app.service.close()


@pytest.mark.parametrize("path", HOOKS.values(), ids=HOOKS)
def test_each_gets_its_form_at_its_url_signed_and_nothing_tells_the_url(customer, caplog, path):
    caplog.set_level(0)
    with Receiver(answer(404)) as receiver:
        check = customer.check(f"http://127.0.0.1:{receiver.port}{path}")
        customer.test_alert(check)
        wait_until(lambda: customer.alerts(check)[0]["attempts"] == 1)
    (received,) = receiver.received
    assert received.head == f"POST {path} HTTP/1.1"
    assert received.headers["content-type"] == "application/json"
    assert Webhook(customer.secret).verify(received.body, received.headers) == received.json
    assert received.json.keys() != {"type", "timestamp", "data", "text", "content"}
    (alert,) = customer.alerts(check)
    assert alert["last_status"] == 404
    assert "secret" not in f"{alert} {caplog.text}"


def test_apprise_makes_a_mail_of_what_it_gets(customer, tmp_path):
    name = "Sicherung \N{EM DASH} 夜 <b>&amp;</b> *5*"
    with Receiver() as receiver, MailServer() as server:
        check = customer.check(f"http://127.0.0.1:{receiver.port}/notify/KEY", name)
        customer.test_alert(check)
        wait_until(lambda: receiver.received)
        notify(receiver.received[0].json, f"mailto://127.0.0.1:{server.port}/?{ADDRESSES}", tmp_path)
        (mail,) = server.mails
    shown = "Sicherung \N{EM DASH} 夜 \u2039b\u203a&amp;\u2039/b\u203a *5*"
    assert mail["Subject"] == f'Test alert for "{shown}"'
    plain = mail.get_body(("plain",)).get_content().strip()
    link = f"https://cards.example/dashboard#{check['id'][:8]}"
    assert plain == f'This is a test alert for "{shown}"; its alerts arrive here. {link}'
    page = mail.get_body(("html",))
    assert page is None or "<b>" not in page.get_content()


ADDRESSES = "from=cardbeat@mail.example&to=ops@mail.example&mode=insecure"


def notify(sent, url, home):
    """What the Apprise API does with the body of a POST: it hands these members to Apprise."""
    program = shutil.which("apprise", path=sysconfig.get_path("scripts"))
    assert program
    options = ["-t", sent["title"], "-n", sent["type"], "-i", sent["format"], "-b", sent["body"]]
    environment = {**os.environ, "HOME": str(home), "PYTHONIOENCODING": "utf-8"}
    subprocess.run([program, *options, url], check=True, capture_output=True, timeout=60, env=environment)


class MailServer(socketserver.ThreadingTCPServer):
    """Takes mails by SMTP (RFC 5321) on loopback, and keeps them."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), _Session)
        self.port = self.server_address[1]
        self.mails: list[EmailMessage] = []
        self._thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.02})
        self._thread.start()

    def __exit__(self, *_):
        self.shutdown()
        self._thread.join()
        self.server_close()


class _Session(socketserver.StreamRequestHandler):
    def handle(self):
        self._say("220 mail.example")
        while line := self.rfile.readline():
            verb = line[:4].upper().strip()
            if verb == b"DATA":
                self._say("354 go on")
                self.server.mails.append(email.message_from_bytes(self._data(), policy=email.policy.default))
            self._say("221 bye" if verb == b"QUIT" else "250 ok")

    def _data(self):
        lines = iter(self.rfile.readline, b".\r\n")
        return b"".join(line.removeprefix(b".") for line in lines)

    def _say(self, line):
        self.wfile.write(f"{line}\r\n".encode())
