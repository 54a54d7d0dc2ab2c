"""Orders: paid, or held until a person has looked at them."""

from django.conf import settings
from django.db import models


class Order(models.Model):
    """An order; `decision_id` is the decision that held it."""

    customer = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE)
    amount = models.DecimalField(max_digits=12, decimal_places=2)
    state = models.CharField(max_length=10)
    decision_id = models.CharField(max_length=80, blank=True)
