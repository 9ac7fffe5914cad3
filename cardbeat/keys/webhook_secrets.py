"""The secrets that sign a key's alerts. For 24 hours after a change alerts carry both signatures."""

import base64
import secrets

from cardbeat.clock import Clock
from cardbeat.concurrency.later import Later
from cardbeat.database import Database, Transaction
from cardbeat.keys.key import Key, key_unknown

OLD_SECRET_SECONDS = 24 * 60 * 60
"""How long the secret before the current one still signs."""
AGAIN_SECONDS = 300
"""A request so soon after another repeats it: the answer was lost, and receivers know the secret before both."""
_FORGOTTEN_AT_ONCE = 500


def new_webhook_secret() -> str:
    """A new secret in the form of the Standard Webhooks specification: `whsec_` and 24 bytes in base64."""
    return f"whsec_{base64.b64encode(secrets.token_bytes(24)).decode()}"


class WebhookSecrets:
    """Replaces the webhook secrets of checks keys. Any thread may use it."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    def renew(self, key: Key) -> Later[str]:
        """A new secret, settled when it is on disk. The result raises `Refusal` 401 if the key was revoked.

        For `OLD_SECRET_SECONDS` the one before it signs alerts too. Raises `Unavailable` while the disk is low.
        """
        secret, until = new_webhook_secret(), int(self._clock()) + OLD_SECRET_SECONDS
        is_soon = "old_webhook_secret_until BETWEEN :again AND :until"
        sql = (
            f"UPDATE keys SET old_webhook_secret = CASE WHEN {is_soon} THEN old_webhook_secret ELSE webhook_secret END,"
            f" old_webhook_secret_until = CASE WHEN {is_soon} THEN old_webhook_secret_until ELSE :until END,"
            " webhook_secret = :secret WHERE id = :id AND revoked_at IS NULL"
        )
        values = {"secret": secret, "until": until, "again": until - AGAIN_SECONDS, "id": key.id}

        def renew(transaction: Transaction) -> str:
            if not transaction.execute(sql, values).rowcount:
                raise key_unknown("This API key was revoked a moment ago.")
            return secret

        return self._database.create_later(renew)

    def forget_old(self) -> None:
        """Delete old secrets that no longer sign, at most 500 in one write. Raises `Unavailable`."""
        now = int(self._clock())
        due = "SELECT seq FROM keys WHERE old_webhook_secret_until <= ? LIMIT ?"
        forget = (
            "UPDATE keys SET old_webhook_secret = NULL, old_webhook_secret_until = NULL"
            f" WHERE seq IN ({due}) AND old_webhook_secret_until <= ?"
        )
        with self._database.read() as connection:
            is_any_due = connection.execute(due, (now, 1)).fetchone() is not None
        if is_any_due:
            self._database.write(lambda it: it.execute(forget, (now, _FORGOTTEN_AT_ONCE, now)).rowcount)
