"""For benchmarks: eight kinds of client as they come to a site's preview cards, each with the headers it would send.

Half of them come through a proxy, which names the visitor's address and gives every request an id of its own.
"""

import random
from typing import BinaryIO

CHROME = (
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/{0}.0.0.0 Safari/537.36"
)
IPHONE = (
    "Mozilla/5.0 (iPhone; CPU iPhone OS 18_{0} like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) "
    "Version/18.{0} Mobile/15E148 Safari/604.1"
)
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:{0}.0) Gecko/20100101 Firefox/{0}.0"
IMAGES = "image/avif,image/webp,image/apng,image/svg+xml,image/*,*/*;q=0.8"
VARIANTS = 64
"""Of each kind: visitors with addresses, versions and languages of their own."""
LANGUAGES = (
    "en-US,en;q=0.9",
    "de-DE,de;q=0.9,en;q=0.6",
    "ja,en-US;q=0.7,en;q=0.3",
    "pt-BR,pt;q=0.8",
    "fr;q=0.9, en;q=0.5",
)


def chrome(chance: random.Random) -> dict[str, str]:
    version = str(chance.randint(118, 140))
    return {
        "Host": "cards.example.com",
        "Connection": "keep-alive",
        "sec-ch-ua": f'"Chromium";v="{version}", "Google Chrome";v="{version}", "Not_A Brand";v="24"',
        "sec-ch-ua-mobile": "?0",
        "sec-ch-ua-platform": '"Windows"',
        "User-Agent": CHROME.format(version),
        "Accept": IMAGES,
        "Sec-Fetch-Site": "cross-site",
        "Sec-Fetch-Mode": "no-cors",
        "Sec-Fetch-Dest": "image",
        "Referer": f"https://blog.example.com/posts/{chance.randint(1, 500)}",
        "Accept-Encoding": "gzip, deflate, br, zstd",
        "Accept-Language": chance.choice(LANGUAGES),
    }


def iphone(chance: random.Random) -> dict[str, str]:
    return {
        "Host": "cards.example.com",
        "Accept": "image/webp,image/avif,image/jxl,image/heic,image/heic-sequence,video/*;q=0.8,image/png,*/*;q=0.5",
        "Connection": "keep-alive",
        "User-Agent": IPHONE.format(chance.randint(0, 6)),
        "Accept-Language": chance.choice(LANGUAGES),
        "Accept-Encoding": "gzip, deflate, br",
    }


def firefox_behind_nginx(chance: random.Random) -> dict[str, str]:
    address = _address(chance)
    return {
        "X-Real-IP": address,
        "X-Forwarded-For": address,
        "X-Forwarded-Proto": "https",
        "X-Request-Id": f"{chance.getrandbits(128):032x}",
        "Host": "cards.example.com",
        "User-Agent": FIREFOX.format(chance.randint(115, 140)),
        "Accept": "image/avif,image/webp,image/png,image/svg+xml,image/*;q=0.8,*/*;q=0.5",
        "Accept-Language": chance.choice(LANGUAGES),
        "Accept-Encoding": "gzip, deflate, br, zstd",
        "DNT": "1",
    }


def facebook(chance: random.Random) -> dict[str, str]:
    return {
        "Host": "cards.example.com",
        "Accept": "*/*",
        "Accept-Encoding": "deflate, gzip",
        "User-Agent": "facebookexternalhit/1.1 (+http://www.facebook.com/externalhit_uatext.php)",
        "Connection": "keep-alive",
        "X-FB-Crawler-Configerator": f"{chance.getrandbits(40):010x}",
    }


def twitter_behind_cloudflare(chance: random.Random) -> dict[str, str]:
    address = _address(chance)
    return {
        "Host": "cards.example.com",
        "Connection": "Keep-Alive",
        "Accept-Encoding": "gzip, br",
        "X-Forwarded-For": address,
        "CF-RAY": f"{chance.getrandbits(64):016x}-{chance.choice(('FRA', 'AMS', 'IAD', 'NRT', 'GRU'))}",
        "X-Forwarded-Proto": "https",
        "CF-Visitor": '{"scheme":"https"}',
        "CF-Connecting-IP": address,
        "CF-IPCountry": chance.choice(("US", "DE", "JP", "BR", "NL")),
        "CDN-Loop": "cloudflare; loops=1",
        "User-Agent": "Twitterbot/1.0",
        "Accept": "*/*",
    }


def slack(chance: random.Random) -> dict[str, str]:
    return {
        "Host": "cards.example.com",
        "User-Agent": "Slack-ImgProxy (+https://api.slack.com/robots)",
        "Accept": "image/*",
        "Accept-Encoding": "gzip",
        "X-Slack-Unfurl": str(chance.randint(1, 10**9)),
    }


def mail_behind_balancer(chance: random.Random) -> dict[str, str]:
    chain = f"{_address(chance)}, {_address(chance)}"
    return {
        "X-Forwarded-For": chain,
        "X-Forwarded-Proto": "https",
        "X-Forwarded-Port": "443",
        "Host": "cards.example.com",
        "X-Amzn-Trace-Id": f"Root=1-{chance.getrandbits(32):08x}-{chance.getrandbits(96):024x}",
        "User-Agent": "Mozilla/5.0 (Windows NT 5.1; rv:11.0) Gecko Firefox/11.0 (via ggpht.com GoogleImageProxy)",
        "Accept": "*/*",
        "Accept-Encoding": "gzip, deflate, br",
    }


def discord_behind_caddy(chance: random.Random) -> dict[str, str]:
    return {
        "Host": "cards.example.com",
        "User-Agent": "Mozilla/5.0 (compatible; Discordbot/2.0; +https://discordapp.com)",
        "Accept": "*/*",
        "Accept-Encoding": "gzip, br",
        "Accept-Language": chance.choice(LANGUAGES),
        "Via": "1.1 Caddy",
        "X-Forwarded-For": _address(chance),
        "X-Forwarded-Host": "cards.example.com",
        "X-Forwarded-Proto": "https",
    }


KINDS = (
    chrome,
    iphone,
    firefox_behind_nginx,
    facebook,
    twitter_behind_cloudflare,
    slack,
    mail_behind_balancer,
    discord_behind_caddy,
)


def header_blocks(seed: int = 1) -> list[str]:
    """The header lines of `VARIANTS` clients of every kind, each block ending with CRLF."""
    chance = random.Random(seed)
    return [_lines(kind(chance)) for kind in KINDS for _ in range(VARIANTS)]


def read_answer(answers: BinaryIO) -> tuple[int, dict[str, str], bytes]:
    """The next answer of a kept connection: status, headers by lower-case name, and a body of known length."""
    status = int(answers.readline().split()[1])
    headers = {}
    while (line := answers.readline().decode("latin-1")) not in ("\r\n", ""):
        name, _, value = line.partition(":")
        headers[name.lower()] = value.strip()
    return status, headers, answers.read(int(headers["content-length"]))


def _lines(headers: dict[str, str]) -> str:
    # The share that closes its connection says so in a line of its own.
    return "".join(f"{name}: {value}\r\n" for name, value in headers.items() if name != "Connection")


def _address(chance: random.Random) -> str:
    return f"203.0.{chance.randrange(256)}.{chance.randrange(1, 255)}"
