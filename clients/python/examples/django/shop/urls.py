"""The pages of the shop, and what Vettance needs below `/vettance/`."""

from django.urls import include, path

from shop import views
from vettance_client.django.views import ProtectedLoginView

urlpatterns = [
    path("vettance/", include("vettance_client.django.urls")),
    path("login/", ProtectedLoginView.as_view(template_name="login.html"), name="login"),
    path("second-factor/", views.second_factor, name="second-factor"),
    path("", views.home, name="home"),
    path("pay/", views.pay, name="pay"),
]
