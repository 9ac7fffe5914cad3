"""The secrets that sign the alerts of a key's checks: replaced without an alert that its receiver can't verify."""

from cardbeat.clock import Clock
from cardbeat.database import Database, Transaction
from cardbeat.keys.key import Key, key_unknown
from cardbeat.keys.store import new_webhook_secret
from cardbeat.later import Later

OLD_SECRET_SECONDS = 24 * 60 * 60
"""For how long alerts are signed with the secret before the present one too."""
_FORGOTTEN_AT_ONCE = 500


class WebhookSecrets:
    """Replaces the webhook secrets of checks keys, which `Keys` issues. Any thread may use it."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    def renew(self, key: Key) -> Later[str]:
        """A new secret, settled when it is on disk. The result raises `Refusal` 401 if the key was revoked.

        For `OLD_SECRET_SECONDS` the one before it signs alerts too; of several before it only the last does.
        """
        secret = new_webhook_secret()
        sql = (
            "UPDATE keys SET old_webhook_secret = webhook_secret, old_webhook_secret_until = ?, webhook_secret = ?"
            " WHERE id = ? AND revoked_at IS NULL"
        )
        values = (int(self._clock()) + OLD_SECRET_SECONDS, secret, key.id)

        def renew(transaction: Transaction) -> str:
            if not transaction.execute(sql, values).rowcount:
                raise key_unknown("This API key was revoked a moment ago.")
            return secret

        return self._database.write_later(renew)

    def forget_old(self) -> None:
        """Remove the old secrets that sign no alert any more, some at a time. Raises `Unavailable`."""
        now = int(self._clock())
        with self._database.read() as connection:
            sql = "SELECT seq FROM keys WHERE old_webhook_secret_until <= ? LIMIT ?"
            seqs = [row["seq"] for row in connection.execute(sql, (now, _FORGOTTEN_AT_ONCE))]
        if not seqs:
            return
        forget = (
            "UPDATE keys SET old_webhook_secret = NULL, old_webhook_secret_until = NULL"
            f" WHERE seq IN ({', '.join('?' * len(seqs))}) AND old_webhook_secret_until <= ?"
        )
        self._database.write(lambda transaction: transaction.execute(forget, (*seqs, now)).rowcount)
