"""What a site can listen to."""

from typing import Final

from django.dispatch import Signal

#: Sent once for each verified delivery of a webhook. Receivers get `event`, a `WebhookEvent`. When one
#: raises, the service sends the delivery again.
webhook_received: Final = Signal()
