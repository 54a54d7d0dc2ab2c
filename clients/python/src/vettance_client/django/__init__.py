"""Vettance in Django: logins, payments, webhooks and the browser SDK.

```python
# settings.py
INSTALLED_APPS = [..., "vettance_client.django"]
VETTANCE = {
    "BASE_URL": "https://risk.example.com",
    "API_KEY": os.environ["VETTANCE_KEY"],
    "ORIGIN": "https://shop.example.com",
}

# urls.py
path("vettance/", include("vettance_client.django.urls"))
path("login/", ProtectedLoginView.as_view(step_up_url="/second-factor/"))  # from vettance_client.django.views

# a view
decision = risk.payment(request, amount=order.total, currency="EUR")  # from vettance_client.django
```
"""

from vettance_client.django.risk import Denied, Risk, StepUpNeeded, risk
from vettance_client.django.signals import webhook_received

__all__ = ["Denied", "Risk", "StepUpNeeded", "risk", "webhook_received"]
