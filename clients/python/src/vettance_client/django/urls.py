"""What pages and the service ask of a site: `path("vettance/", include("vettance_client.django.urls"))`."""

from django.urls import path

from vettance_client.django.page_views import start_js, token
from vettance_client.django.webhook_view import webhook

app_name = "vettance"
urlpatterns = [
    path("start.js", start_js, name="start"),
    path("token", token, name="token"),
    path("webhook", webhook, name="webhook"),
]
